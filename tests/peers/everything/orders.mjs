// An MCP server over standard input and output with the tools of the demo's shop. The first refund gets no decision in time.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const order = { order: "1007", items: ["Coffee grinder"], total: "54.00 EUR", state: "delivered", detail: "It is here." };
const inputSchema = { type: "object" };
const tools = ["look_up_order", "refund_order"].map((name) => ({ name, inputSchema }));
const server = new Server({ name: "orders", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
let refunds = 0;
server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
  const text = (text, isError = false) => ({ content: [{ type: "text", text }], isError });
  if (params.name === "look_up_order") return text(JSON.stringify({ ...order, delivered_days_ago: 6 }));
  refunds += 1;
  if (refunds === 1) return text("Muster: Asked. No answer yet, and the call was not made.", true);
  return text(JSON.stringify(params.arguments));
});
await server.connect(new StdioServerTransport());
