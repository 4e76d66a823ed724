// github.mjs BASE CLIENT KEY PERSON: octokit as a GitHub App. It prints what it gets for its requests, which are those of
// our transport (`talk_to_github` in crates/channels/tests/vendors/clients.rs).
import { createAppAuth } from "@octokit/auth-app";
import { Octokit } from "@octokit/core";

const [baseUrl, appId, privateKey, person] = process.argv.slice(2);
const show = (facts) => console.log(JSON.stringify(facts));
const app = new Octokit({ baseUrl, authStrategy: createAppAuth, auth: { appId, privateKey } });
const auth = { appId, privateKey, installationId: 7 };
const installation = new Octokit({ baseUrl, authStrategy: createAppAuth, auth });
const ada = new Octokit({ baseUrl, auth: person });
const issue = { owner: "acme", repo: "shop", issue_number: 12 };
const pull = { owner: "acme", repo: "shop", pull_number: 12 };

const reached = await ada.request("GET /user/installations");
show({ installations: reached.data.installations.map(({ id, account }) => [id, account.login]) });
const path = "GET /user/installations/{installation_id}/repositories";
const repositories = await ada.request(path, { installation_id: 7 });
const all = await installation.request("GET /installation/repositories", { per_page: 1 });
show({ repositories: repositories.data.repositories.map(({ full_name }) => full_name), of: all.data.total_count });
show({ app: (await app.request("GET /app")).data.slug });
const comment = { ...issue, body: "On it\n\n<!-- muster:d-1 -->" };
const comments = "/repos/{owner}/{repo}/issues/{issue_number}/comments";
const written = await installation.request(`POST ${comments}`, comment);
show({ comment: written.data.body, by: written.data.user.login });
const found = await installation.request(`GET ${comments}`, { ...issue, since: "1970-01-01T00:00:00Z" });
show({ found: found.data.length });
const replies = "POST /repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies";
await installation.request(replies, { ...pull, comment_id: 80, body: "On it\n\n<!-- muster:d-1 -->" });
const reactions = "POST /repos/{owner}/{repo}/issues/comments/{comment_id}/reactions";
const reacted = await installation.request(reactions, { owner: "acme", repo: "shop", comment_id: 80, content: "eyes" });
show({ reaction: reacted.data.content });
const line = { path: "src/a.rs", line: 7, body: "Why?" };
const review = { ...pull, event: "COMMENT", body: "Good", comments: [line] };
show({ review: (await installation.request("POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews", review)).data.state });
const missed = await app.request("GET /app/hook/deliveries", { per_page: 100 });
const failed = missed.data.find(({ status_code }) => status_code !== 200);
const detail = await app.request("GET /app/hook/deliveries/{delivery_id}", { delivery_id: failed.id });
show({ missed: detail.data.request.payload.comment.body, guid: detail.data.guid === failed.guid });
const stranger = new Octokit({ baseUrl, auth: "ghs_another" });
await stranger.request(`POST ${comments}`, comment).catch(({ status }) => show({ refused: status }));
