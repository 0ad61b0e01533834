-- Made by `policyd init --client avante --agent claude`, for avante.nvim.
-- avante names itself to nobody, so `--client avante` does. It passes on PATH and `env`: add what the agent logs in with.
-- Leave `behaviour.auto_approve_tool_permissions` off: avante would answer every question itself.
require("avante").setup({
  provider = "claude",
  acp_providers = {
    ["claude"] = {
      command = "/usr/local/bin/policyd",
      args = {
        "proxy",
        "--client",
        "avante",
        "--",
        "/usr/local/bin/claude-agent-acp",
      },
      env = {},
    },
  },
})
