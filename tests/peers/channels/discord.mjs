// discord.mjs BASE TOKEN: discord.js as a bot. It prints READY, the messages and the tap that come in, and what it gets
// for its own requests, which are those of our transport (`talk_to_discord` in crates/channels/tests/vendors/clients.rs).
import {
  ActionRowBuilder,
  ButtonBuilder,
  ButtonStyle,
  Client,
  Events,
  GatewayIntentBits,
  MessageFlags,
  Partials,
  Routes,
} from "discord.js";

const [base, token] = process.argv.slice(2);
const show = (facts) => console.log(JSON.stringify(facts));
const { Guilds, GuildMessages, DirectMessages, MessageContent } = GatewayIntentBits;
const client = new Client({
  intents: [Guilds, GuildMessages, DirectMessages, MessageContent],
  partials: [Partials.Channel],
  rest: { api: `${base}/api`, retries: 0 },
  allowedMentions: { parse: [] },
});

async function talk() {
  show({ ready: client.user.username, id: client.user.id, name: (await client.rest.get(Routes.user())).username });
  const application = await client.application.fetch();
  show({ application: application.id, readsMessages: application.flags.has("GatewayMessageContentLimited") });
  const thread = await client.channels.fetch("300", { force: true });
  show({ thread: thread.name, parent: thread.parentId, isThread: thread.isThread() });
  const direct = await client.channels.fetch("50", { force: true });
  const button = new ButtonBuilder().setLabel("Yes").setCustomId("A-1:abc:yes").setStyle(ButtonStyle.Secondary);
  const asking = {
    content: "**Delete** it?",
    components: [new ActionRowBuilder().addComponents(button)],
    flags: MessageFlags.SuppressEmbeds,
    enforceNonce: true,
  };
  const reply = { messageReference: "900", failIfNotExists: false };
  const asked = await thread.send({ ...asking, nonce: "n1", reply });
  const again = await thread.send({ ...asking, nonce: "n1", reply });
  show({ sent: asked.content, to: asked.channelId, once: asked.id === again.id });
  const edited = await asked.edit({ content: "Deleted", components: [], flags: MessageFlags.SuppressEmbeds });
  show({ edited: edited.content, buttons: edited.components.length });
  // The second time it is there already.
  for (let nth = 0; nth < 2; nth++) await asked.react("👀");
  const file = { attachment: Buffer.from("bytes of b"), name: "b.txt" };
  const sending = { content: "", files: [file], flags: MessageFlags.SuppressEmbeds, nonce: "n2", enforceNonce: true };
  const sent = await direct.send(sending);
  show({ file: sent.attachments.first()?.name });
  await direct.sendTyping();
  const missed = await direct.messages.fetch({ after: "900", limit: 100 });
  show({ missed: missed.map(({ content }) => content) });
}

client.on(Events.MessageCreate, (message) => {
  if (message.author.id === client.user.id) return;
  const { content, author, channel, reference, guildId, mentions, attachments } = message;
  show({
    said: content,
    by: author.displayName,
    in: channel.id,
    guild: guildId,
    private: channel.isDMBased(),
    names: mentions.has(client.user),
    answers: reference?.messageId ?? null,
    files: attachments.map(({ name }) => name),
  });
});
client.on(Events.InteractionCreate, async (tap) => {
  await tap.deferReply({ flags: MessageFlags.Ephemeral });
  await tap.editReply({ content: "Done" });
  show({ tapped: tap.customId, by: tap.user.id, private: tap.context === 1 });
  await client.destroy();
});
client.on(Events.ShardResume, () => show({ resumed: true }));
const fail = (error) => {
  show({ failed: error.message });
  process.exit(1);
};
client.on(Events.Error, fail);
client.once(Events.ClientReady, () => talk().catch(fail));
await client.login(token).catch((error) => {
  show({ refused: error.code });
  process.exit(0);
});
