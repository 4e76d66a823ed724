// webhook.mjs: GitHub's library, and Standard Webhooks' for JavaScript.
//   github SECRET [INSTALLATION]  prints a line for each of GitHub's published payloads: its name, sender, body and signature.
//                                 With a number, as to a GitHub App
//   verify SECRET OF-GITHUB       reads a request as JSON (headers, body): what each library says about its signature. The first
//                                 secret is one of Standard Webhooks, the second the same for GitHub's library
import { createRequire } from "node:module";
import { sign, verify } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";

const show = (facts) => console.log(JSON.stringify(facts));

async function github(secret, installation) {
  const events = createRequire(import.meta.url)("@octokit/webhooks-examples");
  for (const { name, examples } of events) {
    for (const example of examples) {
      const to = installation ? { installation: { id: Number(installation) } } : {};
      const body = JSON.stringify({ ...example, ...to });
      show({ name, sender: example.sender?.login ?? null, body, signature: await sign(secret, body) });
    }
  }
}

async function judge(secret, ofGithub) {
  let text = "";
  for await (const chunk of process.stdin) text += chunk;
  const { headers, body } = JSON.parse(text);
  const github = await verify(ofGithub, body, headers["x-hub-signature-256"]);
  try {
    new Webhook(secret).verify(body, headers);
    show({ github, standard: true });
  } catch (error) {
    show({ github, standard: error.message });
  }
}

const [what, ...secrets] = process.argv.slice(2);
await { github, verify: judge }[what](...secrets);
