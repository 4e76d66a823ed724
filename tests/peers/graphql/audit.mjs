// Runs the GraphQL-over-HTTP audits against the endpoint in the first argument; fails on a failed MUST or SHOULD.
import { serverAudits } from "graphql-http";

const url = process.argv[2];
let failed = 0;
let passed = 0;
for (const audit of serverAudits({ url, fetchFn: fetch })) {
  const result = await audit.fn();
  // The audits are their own judges: "error" is a failed MUST, "warn" a failed SHOULD, "notice" a failed MAY.
  if (result.status === "ok" || (result.status === "notice" && audit.name.startsWith("MAY"))) {
    passed += 1;
    continue;
  }
  failed += 1;
  console.error(`${result.status}: ${audit.id} ${audit.name}: ${result.reason}`);
}
console.log(`${passed} audits passed, ${failed} failed`);
process.exit(failed === 0 && passed > 50 ? 0 : 1);
