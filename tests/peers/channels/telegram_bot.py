"""telegram_bot.py URL TOKEN [TEXT]...: does with python-telegram-bot what our transport does, in the same order, or sends the texts;
prints a line of JSON for what it gets. The library reads every answer into its own types, and refuses what is none of
Telegram's."""

import asyncio
import json
import sys

from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, ReplyParameters
from telegram.error import TelegramError

UPDATES = ["message", "edited_message", "channel_post", "edited_channel_post", "callback_query"]


def show(**facts):
    print(json.dumps(facts), flush=True)


async def attempt(call):
    try:
        await call
    except TelegramError as error:
        wait = getattr(error, "_retry_after", None)
        show(
            error=type(error).__name__,
            wait=wait and wait.total_seconds(),
            chat=getattr(error, "new_chat_id", None),
        )


async def talk(bot):
    await bot.get_webhook_info()
    show(id=bot.id, username=bot.username, reads_all=bot.can_read_all_group_messages)
    quiet = LinkPreviewOptions(is_disabled=True)
    reply = ReplyParameters(message_id=3, allow_sending_without_reply=True)
    buttons = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="A-1:abc:yes")]])
    sent = await bot.send_message(
        -100,
        "<b>Delete</b> it?",
        message_thread_id=9,
        parse_mode="HTML",
        link_preview_options=quiet,
        reply_parameters=reply,
        reply_markup=buttons,
    )
    show(chat=sent.chat.id, message=sent.message_id, text=sent.text)
    await bot.edit_message_text(
        "Deleted",
        chat_id=-100,
        message_id=sent.message_id,
        parse_mode="HTML",
        link_preview_options=quiet,
        reply_markup=InlineKeyboardMarkup([]),
    )
    await bot.send_document(5, b"bytes of b", filename="b.txt", reply_parameters=reply)
    await bot.send_chat_action(5, "typing")
    await bot.set_message_reaction(-100, sent.message_id, "👀")
    file = await bot.get_file("f1")
    show(file=bytes(await file.download_as_bytearray()).decode())
    await bot.answer_callback_query("q9", text="Done")
    await bot.set_webhook("https://m.test/webhooks/telegram/abc", secret_token="our-secret", allowed_updates=UPDATES)
    await bot.get_webhook_info()
    await attempt(bot.get_updates(timeout=0, limit=100, allowed_updates=UPDATES))
    await bot.delete_webhook()
    updates = await bot.get_updates(timeout=0, limit=100, allowed_updates=UPDATES)
    show(updates=[(update.update_id, update.message.text, update.effective_user.id) for update in updates])
    last = updates[-1].update_id + 1
    updates = await bot.get_updates(offset=last, timeout=50, limit=100, allowed_updates=UPDATES)
    show(updates=[update.update_id for update in updates])


async def main(url, token, *refused):
    at = {"base_url": f"{url}/bot", "base_file_url": f"{url}/file/bot"}
    bot = Bot(token, **at)
    for text in refused:
        await attempt(bot.send_message(5, text))
    if not refused:
        async with bot:
            await talk(bot)
        await attempt(Bot("7:another", **at).initialize())


asyncio.run(main(*sys.argv[1:]))
