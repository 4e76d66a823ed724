// Reads the schema as code generators do, and builds a client's schema from it.
import { buildClientSchema, getIntrospectionQuery, lexicographicSortSchema, printSchema } from "graphql";

const query = getIntrospectionQuery({ inputValueDeprecation: true, directiveIsRepeatable: true, schemaDescription: true });
const response = await fetch(process.argv[2], {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ query }),
});
const { data, errors } = await response.json();
if (errors) throw new Error(JSON.stringify(errors));
const sdl = printSchema(lexicographicSortSchema(buildClientSchema(data)));
console.log(`${sdl.split("\n").length} lines`);
