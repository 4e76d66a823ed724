// drive.mjs BASE TOKEN: Google's own client for Drive. It prints what it gets for its requests, which are those of our
// transport (`talk_to_drive` in crates/channels/tests/vendors/clients.rs).
import { auth, drive as open } from "@googleapis/drive";

const [base, token] = process.argv.slice(2);
const rootUrl = `${base}/`;
const show = (facts) => console.log(JSON.stringify(facts));
const account = new auth.OAuth2();
account.setCredentials({ access_token: token });
const drive = open({ version: "v3", auth: account, rootUrl, retry: false });
const all = { supportsAllDrives: true };
const both = { ...all, includeItemsFromAllDrives: true };
const list = async (q) => {
  const { data } = await drive.files.list({ q, pageSize: 1000, ...both });
  return data.files.map(({ name }) => name);
};

try {
  const { data: about } = await drive.about.get({ fields: "user" });
  show({ account: about.user.emailAddress, me: about.user.me });
  const { data: folder } = await drive.files.get({ fileId: "folder1", ...all });
  show({ folder: folder.name, type: folder.mimeType });
  const { data: begin } = await drive.changes.getStartPageToken(all);
  const media = { mimeType: "text/plain", body: "bytes of b" };
  const requestBody = { name: "b.txt", mimeType: "text/plain", parents: ["folder1"], appProperties: { muster: "d-2-70745489" } };
  const { data: put } = await drive.files.create({ requestBody, media, fields: "id", ...all }, { rootUrl });
  const { data: changes } = await drive.changes.list({ pageToken: begin.startPageToken, pageSize: 1000, ...both });
  show({ changes: changes.changes.length, moved: changes.newStartPageToken !== begin.startPageToken });
  show({ files: await list("'folder1' in parents and trashed = false") });
  show({ put: await list("appProperties has { key='muster' and value='d-2-70745489' } and trashed = false") });
  const { data: bytes } = await drive.files.get({ fileId: put.id, alt: "media", ...all }, { responseType: "text" });
  const { data: text } = await drive.files.export({ fileId: put.id, mimeType: "text/plain" }, { responseType: "text" });
  show({ bytes, text });
  const fileId = put.id;
  const { data: comment } = await drive.comments.create({ fileId, fields: "id", requestBody: { content: "Read" } });
  const commentId = comment.id;
  await drive.replies.create({ fileId, commentId, fields: "id", requestBody: { content: "Right" } });
  const { data: thread } = await drive.comments.get({ fileId, commentId, fields: "*" });
  show({ comment: thread.content, replies: thread.replies.map(({ content }) => content), me: thread.author.me });
  const startModifiedTime = "2000-01-01T00:00:00Z";
  const { data: page } = await drive.comments.list({ fileId, pageSize: 100, fields: "comments", startModifiedTime });
  show({ comments: page.comments.length });
} catch (error) {
  show({ refused: error.status ?? error.code ?? error.message });
}
