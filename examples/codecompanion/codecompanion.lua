-- Made by `policyd init --client codecompanion --agent claude`, for codecompanion.nvim.
-- An adapter's other commands (`yolo`) are lists of their own: leave them out, they are not wrapped by this.
require("codecompanion").setup({
  adapters = {
    acp = {
      claude_code = function()
        return require("codecompanion.adapters").extend("claude_code", {
          commands = {
            default = {
              "/usr/local/bin/policyd",
              "proxy",
              "--",
              "/usr/local/bin/claude-agent-acp",
            },
          },
        })
      end,
    },
  },
})
