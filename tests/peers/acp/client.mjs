// See README.md.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
// What a turn has spent is unstable.
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk/unstable";

const [program, home, ...prompts] = process.argv.slice(2);
const agent = spawn(program, { env: { HOME: home, PATH: process.env.PATH }, stdio: ["pipe", "pipe", "inherit"] });
const say = (what, value) => console.log(JSON.stringify({ what, value }));
const { session, initialize } = methods.agent;

await client({ name: "peer" })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    say("permission", params);
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onRequest(methods.client.elicitation.create, ({ params }) => {
    say("form", params);
    const choice = params.requestedSchema.properties.choice.oneOf[0].const;
    return { action: "accept", content: { choice } };
  })
  .onNotification(methods.client.session.update, ({ params }) => say("update", params.update))
  .connectWith(ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (context) => {
    const call = async (method, params) => {
      const result = await context.request(method, params);
      say(method, result);
      return result;
    };
    await call(initialize, { protocolVersion: 1, clientCapabilities: { elicitation: { form: {} } } });
    const place = { cwd: "/", mcpServers: [] };
    const { sessionId } = await call(session.new, place);
    for (const text of prompts) await call(session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    await call(session.list, {});
    await call(session.close, { sessionId });
    await call(session.load, { sessionId, ...place });
  });
agent.stdin.end();
agent.on("exit", (code) => {
  say("exit", code);
  process.exit(0);
});
