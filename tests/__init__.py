"""The map of the tests.

`test_<package>*.py` test a package of `policyd/`, a file for each topic; the commands of `policyd/cli` have one each
(`test_check.py`, `test_grants_cli.py`, the small ones `test_cli.py`). Across packages: `test_laws` (the laws),
`test_fail_closed` (faults anywhere), `test_library` (the public interface), `test_examples` and `test_readme*` (what is
shown works), `test_reports` (public bugs), `test_layout` (layers and size limits).

Support modules (a test module never imports from another):

    commandline, proxied, daemons, clienthouse    policyd as a command, as a proxy, as a daemon, on a whole machine
    acpx_standin, agents_scripted, agents/        clients and agents that tests start
    playbook, realwire                            conversations with the enforcement, scripted or with a real policy
    asking, told, words, commands_shown           short notations for actions, requests and commands
    commandrows, path_scenes, audited, fakes      scenes: a policy, a project, a log, a disk
    policytext, hookscripts, grantcaptures        policies from text, prompt hooks, grants on recorded requests
    reference, naive, ground                      the decision by plain loops, to compare with
    random_policies, commands_generator,
    commands_states, commands_frames, fuzz/       random input
    stubground                                    what a shell really ran, and what it wrote
    faults, fault_scenes, secret_samples          injected faults, and secrets that must not be shown
    traced, traced_lines, traced_runner           what command lines really do, followed by a tracer
    rowwise, conftest                             how tables and property tests run
    data/, bench/                                 cases as data; speed as ratios in one run
"""
