// An MCP server over standard input and output that offers what Muster's own does. Each tool answers with its arguments;
// `ask_person` answers with the first option.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const inputSchema = { type: "object" };
const tools = ["ask_person", "send_file", "wait"].map((name) => ({ name, inputSchema }));
const server = new Server({ name: "person", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
  const text = (text) => ({ content: [{ type: "text", text }] });
  if (params.name === "ask_person") return text(params.arguments.options[0]);
  if (params.name === "send_file") return text(JSON.stringify(params.arguments));
  console.error("waiting");
  return new Promise(() => signal.addEventListener("abort", () => console.error("cancelled")));
});
await server.connect(new StdioServerTransport());
