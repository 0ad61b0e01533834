-- Made by `policyd init --client avante --agent claude`, for avante.nvim.
-- avante names itself to nobody, so `--client avante` does. It passes on PATH and `env`: add what the agent logs in with.
-- Keep its buttons: with `confirmation_ui_style = "popup"` an `all` is a rejection, of every later question too.
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
  -- avante answers every question by itself unless this is off.
  behaviour = { auto_approve_tool_permissions = false },
})
