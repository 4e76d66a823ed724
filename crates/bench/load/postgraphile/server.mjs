// PostGraphile 5 as its documentation sets it up (the amber preset), without the explorer.
import { createServer } from "node:http";
import { grafserv } from "postgraphile/grafserv/node";
import { postgraphile } from "postgraphile";
import { makePgService } from "postgraphile/adaptors/pg";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";

const preset = {
  extends: [PostGraphileAmberPreset],
  pgServices: [makePgService({ connectionString: process.env.DATABASE_URL, schemas: ["public"], poolSize: 16 })],
  grafserv: { graphqlPath: "/graphql", graphiql: false, watch: false },
  grafast: { explain: false },
};

const server = createServer();
server.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
const service = postgraphile(preset).createServ(grafserv);
await service.addTo(server);
server.listen(Number(process.env.PORT), "127.0.0.1", () => console.log("PostGraphile is serving on", process.env.PORT));
