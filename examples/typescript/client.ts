// An ACP client whose permission requests the policyd daemon answers.
//
//     npm install && node client.ts SOCKET CWD PROMPT COMMAND [ARG …]      the daemon: policyd serve; Node 22.18 or newer
//
// Towards policyd it takes the agent's side of an ACP connection: what its agent sent it, it sends on. What policy wants
// a person to answer comes back as `_policyd/ask`. No daemon, or no answer: rejected.
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [socket, cwd, prompt, command, ...args] = process.argv.slice(2).map((word, at) => (at === 1 ? resolve(word) : word));
const stream = (output: any, input: any) => acp.ndJsonStream(Writable.toWeb(output), Readable.toWeb(input) as any);
const pick = (one?: acp.PermissionOption): acp.RequestPermissionResponse["outcome"] =>
  one ? { outcome: "selected", optionId: one.optionId } : { outcome: "cancelled" };
const reject = ({ options }: acp.RequestPermissionRequest) => pick(options.find((one) => one.kind === "reject_once"));
const person = async (asked: acp.RequestPermissionRequest) => {
  console.log(`ASK ${asked.toolCall.title}`, ...asked.options.map((one, at) => `\n  ${at + 1}. ${one.name}`), "\n  number:");
  return { outcome: pick(asked.options[Number(await createInterface(process.stdin).question("")) - 1]) };
};

const pipe = connect(socket).on("error", () => {});
const policyd = acp.agent({ name: "example" })
  .onRequest("_policyd/ask", (asked: any) => asked, ({ params }) => person(params))
  .connect(stream(pipe, pipe)).client;
const hello = { protocol: 1, client: { name: "example" }, person: process.stdin.isTTY ?? false };
const ready = policyd.request("_policyd/hello", hello).catch((error) => console.error(`no policyd: ${error.message}`));
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
await acp.client({ name: "example" })
  .onNotification("session/update", ({ params }) => void policyd.notify("session/update", params).catch(() => {}))
  .onRequest("session/request_permission", async ({ params }) => {
    const answer = await policyd.request("session/request_permission", params).catch(() => ({ outcome: reject(params) }));
    return console.log(JSON.stringify({ asked: params.toolCall.title, answer: answer.outcome })), answer;
  })
  .connectWith(stream(agent.stdin, agent.stdout), async (ctx) => {
    const { agentInfo } = await ctx.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await ctx.request("session/new", { cwd, mcpServers: [] });
    await ready.then(() => policyd.request("_policyd/session", { sessionId, cwd, agent: agentInfo })).catch(() => {});
    await ctx.request("session/prompt", { sessionId, prompt: [{ type: "text", text: prompt }] });
  });
process.exit(0);
