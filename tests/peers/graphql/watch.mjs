// Watches the agents of an organization with the client of graphql-ws or graphql-sse; a line for each answer.
//   node watch.mjs ws|sse URL TOKEN ORG
import { createClient as createSocketClient } from "graphql-ws";
import { createClient as createEventClient } from "graphql-sse";
import WebSocket from "ws";

const [transport, url, token, org] = process.argv.slice(2);
const authorization = `Bearer ${token}`;

const client =
  transport === "ws"
    ? createSocketClient({
        url: url.replace(/^http/, "ws"),
        webSocketImpl: WebSocket,
        connectionParams: { Authorization: authorization },
        retryAttempts: 0,
        lazyCloseTimeout: 5000,
        on: { closed: (event) => console.log(`closed ${event.code}`) },
      })
    : createEventClient({ url, headers: { authorization }, retryAttempts: 0 });

// A query over the same transport: its answer shows that the connection stands.
const query = { query: "query($org: Id!) { agents(orgId: $org, page: 1, limit: 1) { total } }", variables: { org: Number(org) } };
for await (const answer of client.iterate(query)) {
  console.log(`query ${JSON.stringify(answer)}`);
}
const subscription = {
  query: "subscription($org: Id!) { agentChanged(orgId: $org) { id name status server { id } } }",
  variables: { org: Number(org) },
};
console.log("ready");
try {
  for await (const answer of client.iterate(subscription)) {
    console.log(`next ${JSON.stringify(answer)}`);
  }
  console.log("complete");
} catch (error) {
  console.log(`error ${error.code ?? error.message ?? error}`);
}
process.exit(0);
