//! Dialects and splitting.

use proptest::{prelude::*, test_runner::RngSeed};

use super::{writer::MAX_PARTS, *};

const DIALECTS: [Dialect; 6] = [
    Dialect::Discord,
    Dialect::Html,
    Dialect::TelegramHtml,
    Dialect::Mrkdwn,
    Dialect::Markdown,
    Dialect::Plain,
];

fn longest(count: usize, unit: Unit) -> Longest {
    Longest { count, unit }
}

fn whole(markdown: &str, dialect: Dialect) -> String {
    let mut parts = render(markdown, dialect, longest(100_000, Unit::Characters));
    assert_eq!(parts.len(), 1);
    parts.remove(0).text
}

#[test]
fn markers_in_code_do_not_nest() {
    let (spaces, list, quotes) = (" ".repeat(64), "- ".repeat(40), "> ".repeat(40));
    for code in [
        format!("```\n{spaces}- a\n{quotes}b\n{list}c\n{spaces}7. d\n```"),
        format!("> ~~~\n> {spaces}- a\n> {quotes}b\n> ~~~"),
        format!("- a\n\n  ```\n  {spaces}* a\n  ```"),
        format!("a\n\n    {list}a\n    {quotes}b"),
    ] {
        for dialect in DIALECTS {
            assert!(!whole(&code, dialect).contains('\\'), "{code} {dialect:?}");
        }
        // Nesting outside of the code is still limited.
        let both = format!("{code}\n\na\n\n{quotes}b");
        assert_eq!(whole(&both, Dialect::Markdown).matches('\\').count(), 1, "{both}");
    }
}

const SAMPLE: &str = "# Title\n\nSome **bold *and* italic**, `a<b`, ~~gone~~ & [a page](https://a.test/?x=1&y=2).\nNext line.\n\n\
    - one\n- two\n  1. deep\n  2. deeper\n\n> a quote\n> goes on\n\n```rust\nfn a() {\n    1 < 2\n}\n```\n\n| a | b |\n|---|---|\n| 1 | 22 |\n";

#[test]
fn telegram() {
    let expected = "<b>Title</b>\n\nSome <b>bold <i>and</i> italic</b>, <code>a&lt;b</code>, <s>gone</s> &amp; \
        <a href=\"https://a.test/?x=1&amp;y=2\">a page</a>.\nNext line.\n\n• one\n• two\n  1. deep\n  2. deeper\n\n\
        <blockquote>a quote\ngoes on</blockquote>\n\n<pre><code class=\"language-rust\">fn a() {\n    1 &lt; 2\n}</code></pre>\n\n\
        <pre>a | b\n--|---\n1 | 22</pre>";
    assert_eq!(whole(SAMPLE, Dialect::TelegramHtml), expected);
}

#[test]
fn slack() {
    let expected = "*Title*\n\nSome *bold _and_ italic*, `a&lt;b`, ~gone~ &amp; <https://a.test/?x=1&amp;y=2|a page>.\nNext line.\n\n\
        • one\n• two\n  1. deep\n  2. deeper\n\n> a quote\n> goes on\n\n```\nfn a() {\n    1 &lt; 2\n}\n```\n\n```\na | b\n--|---\n1 | 22\n```";
    assert_eq!(whole(SAMPLE, Dialect::Mrkdwn), expected);
}

#[test]
fn discord() {
    let expected = "# Title\n\nSome **bold *and* italic**, `a<b`, ~~gone~~ & [a page](<https://a.test/?x=1&y=2>).\nNext line.\n\n\
        - one\n- two\n  1. deep\n  2. deeper\n\n> a quote\n> goes on\n\n```rust\nfn a() {\n    1 < 2\n}\n```\n\n```\na | b\n--|---\n1 | 22\n```";
    assert_eq!(whole(SAMPLE, Dialect::Discord), expected);
    assert_eq!(whole("#### **a** b", Dialect::Discord), "**a b**");
    // Addresses stay as they are.
    assert_eq!(
        whole(r"\*pay\* snake_case (https://a.test/b_c <https://a.test/d_e> <@5>", Dialect::Discord),
        r"\*pay\* snake\_case (https://a.test/b_c https://a.test/d_e \<@5>"
    );
}

#[test]
fn slack_escapes_marks_in_plain_text() {
    // Invisible characters surround each mark at a word's edge.
    let kept = whole(r"\*pay\* \~not\~ \`now\` \_it\_ snake\_case 2\*3", Dialect::Mrkdwn);
    assert_eq!(kept.replace("\u{2060}", "|"), "|*|pay|*| |~|not|~| |`|now|`| |_|it|_| snake_case 2*3");
}

#[test]
fn plain() {
    let expected = "Title\n\nSome bold and italic, a<b, gone & a page (https://a.test/?x=1&y=2).\nNext line.\n\n\
        • one\n• two\n  1. deep\n  2. deeper\n\n> a quote\n> goes on\n\nfn a() {\n    1 < 2\n}\n\na | b\n--|---\n1 | 22";
    assert_eq!(whole(SAMPLE, Dialect::Plain), expected);
}

#[test]
fn mail() {
    let html = whole(SAMPLE, Dialect::Html);
    for expected in [
        "<h1>Title</h1>",
        "<strong>bold <em>and</em> italic</strong>",
        "<ol>\n",
        "<li>deep</li>",
        "<blockquote>\n<p>a quote\ngoes on</p>",
        "<pre><code>fn a() {\n    1 &lt; 2\n}</code></pre>",
        "<tr><td>1</td><td>22</td></tr>",
    ] {
        let squeezed = html.replace("\n\n", "\n").replace("</td>\n<td>", "</td><td>");
        assert!(squeezed.contains(expected), "{expected} is not in {squeezed}");
    }
    assert!(!whole("<script>alert(1)</script>", Dialect::Html).contains("<script"));
}

#[test]
fn markdown_stays_as_it_was_written() {
    assert_eq!(whole(SAMPLE, Dialect::Markdown), SAMPLE.trim());
    assert_eq!(whole("look, @everyone", Dialect::Markdown), "look, @\u{2060}everyone");
}

#[test]
fn markdown_without_words_is_sent_as_it_was_written() {
    for markdown in ["```\n```", "[a]: https://a.test/", "![](https://a.test/b.png)", "#", "> ", "&nbsp;"] {
        for dialect in DIALECTS {
            let parts = render(markdown, dialect, longest(600, Unit::Characters));
            assert_eq!(parts.len(), 1, "{markdown} in {dialect:?}");
            assert_eq!(parts[0].plain, markdown.trim(), "{dialect:?}");
        }
    }
    assert_eq!(whole("[<b>]: @all", Dialect::Html), "<p>[&lt;b&gt;]: @\u{2060}all</p>");
    assert_eq!(whole("```\n```", Dialect::Markdown), "```\n```");
    assert!(render(" \n", Dialect::Plain, longest(600, Unit::Characters)).is_empty());
    // Long definitions are split like any text.
    let many = (0..100).map(|n| format!("[{n}]: https://a.test/\n")).collect::<String>();
    let parts = render(&many, Dialect::TelegramHtml, longest(600, Unit::VisibleUtf16));
    assert!(parts.len() > 2 && parts.iter().all(|part| is_short(part, longest(600, Unit::VisibleUtf16))));
}

#[test]
fn plain_text_is_sent_letter_by_letter() {
    let text = "2*3*4 C:\\*\n\n[1]: https://a.test";
    for (dialect, expected) in [
        (Dialect::Html, r"<p>2*3*4 C:\*<br>|<br>|[1]: https://a.test</p>"),
        (Dialect::TelegramHtml, r"2*3*4 C:\*||[1]: https://a.test"),
        (Dialect::Mrkdwn, r"2*3*4 C:\*||[1]: https://a.test"),
        (Dialect::Discord, r"2\*3\*4 C:\\\*||\[1\]: https://a.test"),
        (Dialect::Markdown, r"2\*3\*4 C:\\\*||\[1\]: https://a.test"),
        (Dialect::Plain, r"2*3*4 C:\*||[1]: https://a.test"),
    ] {
        let parts = render_plain(text, dialect, longest(600, Unit::Characters));
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].text.replace('\u{2060}', ""), expected.replace('|', "\n"), "{dialect:?}");
        assert_eq!(parts[0].plain, text);
    }
    assert_eq!(render_plain("@all", Dialect::Plain, longest(600, Unit::Characters))[0].text, "@\u{2060}all");
    // Split between words.
    let words = (0..300).map(|n| format!("*w{n}*")).collect::<Vec<_>>().join(" ");
    let parts = render_plain(&words, Dialect::TelegramHtml, longest(600, Unit::VisibleUtf16));
    assert!(parts.len() > 2 && parts.iter().all(|part| is_short(part, longest(600, Unit::VisibleUtf16))));
    assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(" "), words);
}

#[test]
fn links_are_no_commands() {
    assert_eq!(
        whole("[all](!channel) <!here> [x](javascript:alert)", Dialect::Mrkdwn),
        "all (!channel) &lt;!\u{2060}here&gt; x (javascript:alert)"
    );
    assert_eq!(whole("[a](https://b.test/|c>d)", Dialect::Mrkdwn), "<https://b.test/%7Cc%3Ed|a>");
    assert_eq!(
        whole("![a picture](https://b.test/c.png)", Dialect::Plain),
        "a picture (https://b.test/c.png)"
    );
}

#[test]
fn fences_are_closed_and_opened_again() {
    let code = (0..100).map(|line| format!("let line_{line} = {line};\n")).collect::<String>();
    let parts = render(
        &format!("Look:\n\n```rust\n{code}```\n\nDone."),
        Dialect::Mrkdwn,
        longest(600, Unit::Characters),
    );
    assert!(parts.len() > 2);
    for part in &parts {
        assert_eq!(part.text.matches("```").count() % 2, 0, "{}", part.text);
        assert!(part.text.chars().count() <= 600);
    }
    assert!(parts[1].text.starts_with("```\nlet line_"), "{}", parts[1].text);
    let telegram =
        render(&format!("```rust\n{code}```"), Dialect::TelegramHtml, longest(600, Unit::VisibleUtf16));
    for part in telegram {
        assert!(part.text.starts_with("<pre><code class=\"language-rust\">let line_"), "{}", part.text);
        assert!(part.text.ends_with("</code></pre>"));
    }
}

/// Telegram counts the visible text, but rejects anything longer than 32,768 bytes before it parses the marks.
#[test]
fn marks_only_make_no_part_too_long() {
    let facts = crate::traits(crate::Kind::Telegram);
    for (piece, times) in [
        ("***~~a~~*** ", 1_500),
        ("**`a`** ", 1_700),
        ("~~**_`a`_**~~ ", 4_000),
        ("[a](https://a.test/bcdefghijklmnopqrstuvwxyz) ", 2_000),
        ("& < > ", 4_000),
        ("東京 ", 3_000),
    ] {
        let parts = render(&piece.repeat(times), facts.dialect, facts.longest);
        assert!(parts.len() > 1 || times < 2_000, "{piece}");
        let words: usize = parts.iter().map(|part| part.plain.split_whitespace().count()).sum();
        assert!(words >= times, "{piece} is whole: {words}");
        for part in parts {
            assert!(part.text.len() <= 32_768, "{piece}: {} bytes", part.text.len());
            assert!(part.plain.encode_utf16().count() <= 4_096, "{piece}");
        }
    }
}

#[test]
fn a_part_ends_between_blocks_if_it_can() {
    let blocks = [150, 120, 100].map(|length| "word ".repeat(length / 5)).join("\n\n");
    let parts = render(&blocks, Dialect::Plain, longest(300, Unit::Characters));
    assert_eq!(parts.iter().map(|part| part.text.split("\n\n").count()).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn surrogate_pairs_and_clusters_stay_whole() {
    let family = "👨‍👩‍👧";
    let parts = render(&family.repeat(100), Dialect::TelegramHtml, longest(200, Unit::VisibleUtf16));
    for part in &parts {
        assert!(part.text.encode_utf16().count() <= 200);
        assert_eq!(part.text.replace(family, ""), "");
    }
    assert_eq!(parts.len(), 100_usize.div_ceil(200 / family.encode_utf16().count()));
}

#[test]
fn a_long_text_costs_no_more_than_its_length() {
    let text = "word and **word**\n\n".repeat(20_000);
    let parts = render(&text, Dialect::TelegramHtml, longest(4096, Unit::VisibleUtf16));
    assert!(parts.len() > 50 && parts.len() < 120, "{}", parts.len());
    assert_eq!(render(&text, Dialect::Html, longest(5_000_000, Unit::Characters)).len(), 1);
}

#[test]
fn a_text_of_too_many_parts_ends_with_a_note() {
    let text = |parts: usize| vec!["w".repeat(600); parts].join("\n\n");
    let of = |parts, dialect| render(&text(parts), dialect, longest(600, Unit::VisibleUtf16));
    let whole = of(MAX_PARTS, Dialect::Mrkdwn);
    assert_eq!((whole.len(), whole[MAX_PARTS - 1].text.len()), (MAX_PARTS, 600));
    let rest = "… The rest of this message is in the panel.";
    for (dialect, expected) in [(Dialect::Mrkdwn, rest.to_owned()), (Dialect::Html, format!("<p>{rest}</p>"))]
    {
        let cut = of(MAX_PARTS + 1, dialect);
        assert_eq!((cut.len(), cut[MAX_PARTS - 2].plain.len()), (MAX_PARTS, 600));
        assert_eq!(cut[MAX_PARTS - 1], Rendered { text: expected, plain: rest.to_owned() });
    }
    // A single word is cut, too.
    let cut = render(&"w".repeat(200_000), Dialect::Plain, longest(600, Unit::Characters));
    assert_eq!((cut.len(), cut[MAX_PARTS - 1].plain.as_str()), (MAX_PARTS, rest));
}

#[test]
fn an_overlong_encoded_address_is_no_link() {
    let link = |signs: usize| format!("[a page](https://a.test/?{})", "&".repeat(signs));
    let of = |signs| render(&link(signs), Dialect::Mrkdwn, longest(3500, Unit::Characters)).remove(0).text;
    assert_eq!(of(100), format!("<https://a.test/?{}|a page>", "&amp;".repeat(100)));
    assert_eq!(of(200), format!("a page (https://a.test/?{})", "&amp;".repeat(200)));
}

#[test]
fn references_to_one_address_are_bounded() {
    let text = format!("[x]: https://a.test/?{}\n\n{}", "b".repeat(450), "[a][x] ".repeat(100));
    let written = whole(&text, Dialect::Html);
    let links = written.matches("<a href=").count();
    assert!(links > 20 && links < 50, "{links}");
    assert!(written.ends_with(" a a</p>"), "{written}");
}

/// Texts that would grow many times if anything were repeated for each part, level or column.
fn bombs() -> Vec<String> {
    let wide = |columns: usize, row: &str| {
        let head = format!("|{}|\n|{}\n", vec!["h".repeat(40); columns].join("|"), "-|".repeat(columns));
        head + &format!("{row}\n").repeat(columns)
    };
    let amps = "&".repeat(850);
    let words = "word *with* `marks` ".repeat(300);
    vec![
        format!("[{}](https://a.test/?{amps})", "a".repeat(3000)),
        format!("[{words}](https://a.test/?{})", "&".repeat(20)),
        format!("[x]: https://a.test/?{amps}\n\n{}", "[a][x] ".repeat(1000)),
        wide(120, "|a"),
        wide(100, &("|".repeat(100) + "a")),
        wide(1, "|a").repeat(300),
        "- ".repeat(1000) + &words,
        "> - 999999999. ".repeat(300) + &words,
        format!("{}# ***~~[{words}](https://a.test/)~~***", "999999999. ".repeat(6)),
        format!(">>>>>> {}", "a\n".repeat(3000)),
        format!("1. 1. 1. 1. 1. 1. {}", "a\n".repeat(3000)),
        format!("```{}\n{}```", "x".repeat(5000), "\n\na".repeat(2000)),
        format!("```{}\n{}```", "x".repeat(24), "`\n".repeat(5000)),
        "*a **b ~~c ".repeat(1000),
        "![".repeat(2000) + &"](a)".repeat(2000),
        "\"&<`_*".repeat(2000),
        ">a\n\n".repeat(2000),
    ]
}

/// Whether all parts are short, and together not much longer than their source.
fn is_bounded(source: &str, parts: &[Rendered], longest: Longest) -> bool {
    let size: usize = parts.iter().map(|part| part.text.len() + part.plain.len()).sum();
    let is_much = size > 30 * source.len() + 1000 || parts.len() > MAX_PARTS;
    !is_much && parts.iter().all(|part| is_short(part, longest))
}

#[test]
fn no_text_becomes_many_times_its_length() {
    let lengths = [600, 3500, 100_000].map(|count| longest(count, Unit::Characters));
    let lengths = [&lengths[..], &[longest(4096, Unit::VisibleUtf16)]].concat();
    for bomb in bombs() {
        for (dialect, &longest) in
            DIALECTS.iter().flat_map(|&dialect| lengths.iter().map(move |of| (dialect, of)))
        {
            let parts = render(&bomb, dialect, longest);
            let begins: String = bomb.chars().take(40).collect();
            assert!(is_bounded(&bomb, &parts, longest), "{begins}… in {dialect:?} of {longest:?}");
        }
    }
}

/// Repeated Markdown characters.
fn mixes() -> impl Strategy<Value = String> {
    const SIGNS: &str = "> ¦- ¦1. ¦999999999. ¦*¦_¦**¦~~¦`¦```\n¦# ¦[¦](https://a.test/?&&&&)¦![¦|¦|-|-|\n¦\n¦\n\n¦    ¦ ¦a¦word ¦&¦\"¦<¦\
                         @all ¦\\¦😀";
    let some = (proptest::sample::select(SIGNS.split('¦').collect::<Vec<_>>()), 1..60_usize);
    proptest::collection::vec(some, 1..40)
        .prop_map(|mix| mix.into_iter().map(|(sign, times)| sign.repeat(times)).collect())
}

/// Blocks of numbered words, so that losing or swapping one is noticed.
fn blocks() -> impl Strategy<Value = (String, usize)> {
    let block = (0..9_u8, 1..120_usize, any::<bool>());
    proptest::collection::vec(block, 1..12).prop_map(|blocks| {
        let (mut markdown, mut words) = (String::new(), 0);
        for (kind, length, marked) in blocks {
            let mut next = || {
                words += 1;
                let word = format!("w{words}ü😀");
                if marked && kind < 7 { format!("**{word}**") } else { word }
            };
            let line = (0..length).map(|_| next()).collect::<Vec<_>>();
            markdown.push_str(&match kind {
                0..=2 => line.join(" "),
                3 => format!("## {}", line.join(" ")),
                4 => line.iter().map(|word| format!("- {word}\n  - *{word}*\n")).collect(),
                5 => line.iter().map(|word| format!("> {word} <&>\n")).collect(),
                6 => line.iter().map(|word| format!("1. {word}\n")).collect(),
                7 => format!("```sh\n{}\n```", line.join("\n")),
                _ => format!("`{}`", line.join(" ")),
            });
            markdown.push_str("\n\n");
        }
        (markdown, words)
    })
}

fn dialects() -> impl Strategy<Value = Dialect> {
    proptest::sample::select(&DIALECTS[..])
}

fn units() -> impl Strategy<Value = Unit> {
    prop_oneof![Just(Unit::Characters), Just(Unit::VisibleUtf16)]
}

fn is_short(part: &Rendered, longest: Longest) -> bool {
    let marked = longest.unit == Unit::VisibleUtf16 || longest.unit.length(&part.text) <= longest.count;
    marked && longest.unit.length(&part.plain) <= longest.count
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_too_long((markdown, words) in blocks(), dialect in dialects(), unit in units(), count in 600..2000_usize) {
        let longest = longest(count, unit);
        let parts = render(&markdown, dialect, longest);
        for part in &parts {
            prop_assert!(is_short(part, longest), "{} of {}: {}", part.text.len(), count, part.text);
        }
        for text in [|part: &Rendered| part.text.clone(), |part: &Rendered| part.plain.clone()] {
            let all = parts.iter().map(text).collect::<Vec<_>>().join("\n");
            let mut from = 0;
            for word in 1..=words {
                let found = all[from..].find(&format!("w{word}ü😀"));
                prop_assert!(found.is_some(), "w{word} is lost in {all}");
                from += found.unwrap_or_default();
            }
        }
        if dialect == Dialect::TelegramHtml {
            for part in &parts {
                for tag in ["b", "i", "code", "pre", "blockquote"] {
                    let opened = part.text.matches(&format!("<{tag}>")).count() + part.text.matches(&format!("<{tag} ")).count();
                    prop_assert_eq!(opened, part.text.matches(&format!("</{tag}>")).count());
                }
            }
        }
    }

    #[test]
    fn any_text_is_rendered(markdown in "[ \\n*_`~>#\\-\\[\\](){}|<!@a-z0-9\u{1F600}\u{301}]{0,400}", dialect in dialects(), unit in units()) {
        let longest = longest(600, unit);
        let parts = render(&markdown, dialect, longest);
        prop_assert_eq!(parts.is_empty(), markdown.trim().is_empty());
        for part in parts {
            prop_assert!(is_short(&part, longest), "{:?}", part);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn no_mix_becomes_many_times_its_length(mix in mixes(), dialect in dialects(), unit in units()) {
        let longest = longest(3500, unit);
        prop_assert!(is_bounded(&mix, &render(&mix, dialect, longest), longest));
    }
}
