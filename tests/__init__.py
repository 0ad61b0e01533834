"""The map of the tests.

`test_<room>*.py` are about a room of `policyd/`, one file for each thing it promises; the commands of `policyd/cli`
have one each (`test_check.py`, `test_grants_cli.py`, the small ones `test_cli.py`). About no single room: `test_laws`
(the laws), `test_fail_closed` (faults anywhere), `test_library` (what embedders import), `test_examples` and
`test_readme*` (what is shown runs), `test_reports` (public bugs), `test_layout` (the house itself).

What they share:

    commandline, proxied, daemons, clienthouse    policyd typed, as a proxy, as a daemon, on a whole machine
    acpx_standin, agents_scripted, agents/        clients and agents that tests start
    playbook, realwire                            conversations with the enforcement, as text
    asking, told, words, commands_shown           short notations for actions, requests and commands
    commandrows, path_scenes, audited, fakes      scenes: a policy, a project, a log, a disk
    reference, naive, ground                      the decision by plain loops, to compare with
    random_policies, commands_generator,
    commands_states, commands_frames, fuzz/       what is made at random
    stubground                                    what a shell really ran, and what it wrote
    faults, fault_scenes, secret_samples          what goes wrong, and what must not be shown
    traced, traced_lines, traced_runner           what command lines really do, followed by a tracer
    rowwise, conftest                             how tables and property tests run
    data/, bench/                                 cases as data; speed as ratios in one run
"""
