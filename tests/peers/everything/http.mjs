// server-everything over streamable HTTP, on a free port of the loopback interface (its own program listens on all of
// them). Prints `listening PORT`. Only `Authorization: Bearer peer` may in.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createServer as everything } from "../node_modules/@modelcontextprotocol/server-everything/dist/server/index.js";

const transports = new Map();

async function begin() {
  const { server } = everything();
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

const http = createServer(async (request, response) => {
  if (request.headers.authorization !== "Bearer peer") {
    response.writeHead(401).end();
    return;
  }
  const transport = transports.get(request.headers["mcp-session-id"]) ?? (await begin());
  await transport.handleRequest(request, response);
});
http.listen(0, "127.0.0.1", () => console.log(`listening ${http.address().port}`));
