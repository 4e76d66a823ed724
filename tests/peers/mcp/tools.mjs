// tools.mjs URL TOKEN [NAME ARGUMENTS]...: connects to /mcp with the official client library, and prints a line for
// what it gets: the server, the tools, and the result of each call. The library checks every message and every
// structured result against its schema.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token, ...calls] = process.argv.slice(2);
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const client = new Client({ name: "muster-peer", version: "1.0.0" });
const print = (value) => console.log(JSON.stringify(value));

await client.connect(transport);
print({ server: client.getServerVersion(), instructions: client.getInstructions(), session: transport.sessionId ?? null });
print(await client.listTools());
for (let n = 0; n < calls.length; n += 2) {
  try {
    print(await client.callTool({ name: calls[n], arguments: JSON.parse(calls[n + 1]) }));
  } catch (error) {
    print({ thrown: String(error.message), code: error.code ?? null });
  }
}
await client.close();
