//! HTML of mail programs and shops.

use super::*;

fn text(html: &str) -> String {
    to_text(html).0
}

fn table(rows: &[(&str, &str)]) {
    for (html, expected) in rows {
        assert_eq!(text(html), *expected, "{html}");
    }
}

#[test]
fn each_block_row_and_item_has_a_line() {
    table(&[
        ("<div>Hello</div><div>second line</div>", "Hello\nsecond line"),
        ("a<div>b</div>c", "a\nb\nc"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<p>one<p>two<div>three</div>", "one\n\ntwo\n\nthree"),
        ("one<br>two<br><br><br>three<br/>", "one\ntwo\n\nthree"),
        ("<div>a</div><div><br></div><div>b</div>", "a\n\nb"),
        ("<div>a<br></div><div>b</div>", "a\nb"),
        ("<h1>Order</h1><h2>Details</h2>text", "Order\n\nDetails\n\ntext"),
        ("a<hr>b", "a\n---\nb"),
        ("<section>a</section><footer>b</footer>", "a\nb"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\nb\nc\nd"),
        (" a \n <b>b</b><i>c</i>\t d ", "a bc d"),
        ("a<b> b</b>", "a b"),
        (
            "<p class=MsoNormal>a</p><p class=MsoNormal><o:p>&nbsp;</o:p></p><p class=MsoNormal>b</p>",
            "a\n\nb",
        ),
        ("<p style='margin:0cm'>a</p><p style='margin:0'>b</p>", "a\nb"),
        ("<div>a</div><div>&nbsp;</div><div>b</div>", "a\n\nb"),
        ("a</br>b", "a\nb"),
    ]);
}

#[test]
fn cells_are_apart() {
    table(&[
        (
            "<table><tr><th>Qty</th><th>Price</th><th>Total</th></tr><tr><td>3</td><td>100</td><td>300</td></tr></table>",
            "Qty\tPrice\tTotal\n3\t100\t300",
        ),
        ("<table><tr><td>Qty<td>3<tr><td>Price<td>100</table>", "Qty\t3\nPrice\t100"),
        ("<table><tr><td>a</td><td></td><td>c</td><td> </td></tr></table>", "a\t\tc"),
        ("<table><tr><td>&nbsp;</td><td>only</td><td>&nbsp;</td></tr></table>", "only"),
        ("<table><tr><td><div>Name</div></td><td><p>Ada</p></td></tr></table>", "Name\tAda"),
        // A cell's short lines stay in its row, long ones go below each other.
        (
            "<table><tr><td>Shirt<br>Size M</td><td>1</td><td>25.00</td></tr></table>",
            "Shirt / Size M\t1\t25.00",
        ),
        (
            "<table><tr><td>a</td><td>b</td><td><p>one</p><p>two</p></td><td>c</td></tr></table>",
            "a\tb\n\none\n\ntwo\n\nc",
        ),
        // Tables as layout.
        (
            "<table><tr><td><table><tr><td>Item</td><td>5</td></tr></table></td></tr><tr><td>Total</td></tr></table>",
            "Item\t5\nTotal",
        ),
        (
            "<table><tr><td><table><tr><td>a</td></tr></table></td><td><table><tr><td>b</td></tr></table></td></tr></table>",
            "a\tb",
        ),
        // Cells across columns and rows.
        (
            "<table><tr><th>Day<th>Open<th>Close<tr><td rowspan=2>Monday<td>9<td>12<tr><td>14<td>18<tr><td>Tuesday<td><td>17\
             <tr><td colspan=2>Sum<td>99</table>",
            "Day\tOpen\tClose\nMonday\t9\t12\n\t14\t18\nTuesday\t\t17\nSum\t\t99",
        ),
        (
            "<table><tr><td rowspan=2 colspan=2>a<td>b<td rowspan=3>c<tr><td>d<td>x<tr><td>e<td>f<td>g</table><table><tr><td>h<td>i</table>",
            "a\t\tb\tc\n\t\td\t\tx\ne\tf\tg\nh\ti",
        ),
        ("<table><tr><td colspan=0>a<td rowspan=x>b<tr><td>c<td>d</table>", "a\tb\nc\td"),
        (
            "<table><tr><td rowspan=2><table><tr><td rowspan=9>a<td>b</table><td>c<tr><td>d<td>e</table>",
            "a\tb\tc\n\td\te",
        ),
        // Missing tags.
        ("<td>a<td>b", "a\tb"),
        ("<table>loose<tr>text<td>a</table>end", "loose\ntext\na\nend"),
        ("<table><tr><td>a</div></td><td>b</td></tr></table>c", "a\tb\nc"),
    ]);
}

#[test]
fn items_have_numbers_or_dashes() {
    table(&[
        ("<ol><li>cancel 12</li><li>5 new ones</li></ol>", "1. cancel 12\n2. 5 new ones"),
        ("<ol start=4><li>a<li value=9>b<li>c</ol>", "4. a\n9. b\n10. c"),
        // Numbering styles.
        ("<ol type=a><li>x<li>y</ol>", "a. x\nb. y"),
        ("<ol type=A start=26><li>x<li>y<li value=0>z</ol>", "Z. x\nAA. y\n0. z"),
        (
            "<ol style='list-style-type: lower-roman' type=1 start=4><li>x<br>y<li value=1990>z</ol>",
            "iv. x\n    y\nmcmxc. z",
        ),
        ("<ol type=I><li>x<li value=4000>y</ol>", "I. x\n4000. y"),
        ("<ol type=a style='list-style:decimal inside'><li>x<ul type=a><li>y</ul></ol>", "1. x\n   - y"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<p>x</p><ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>y", "x\n\n- a\n  - b\n- c\n\ny"),
        ("<ol><li><p>a</p><p>b</p></li></ol>", "1. a\n\n   b"),
        ("<li>a", "- a"),
        ("<ul><li></li><li>b</li></ul>", "- b"),
    ]);
}

#[test]
fn markup_with_meaning_keeps_its_signs() {
    table(&[
        ("Please <s>do not</s> ship <del>it</del>", "Please ~~do not~~ ship ~~it~~"),
        ("<b>Please <strike>do not</strike></b> ship", "Please ~~do not~~ ship"),
        (
            "Please <span style='text-decoration: line-through red'>do <b>not</b></span> ship",
            "Please ~~do not~~ ship",
        ),
        ("<s style='text-decoration:line-through'>a</s> b", "~~a~~ b"),
        ("<p>a</p><p style='text-decoration-line:line-through'>b</p><p>c</p>", "a\n\n~~b~~\n\nc"),
        (
            "<table><tr><td>Shirt<td style='text-decoration:line-through'>25.00<td>19.00</table>",
            "Shirt\t~~25.00~~\t19.00",
        ),
        ("<span style='display:none;text-decoration:line-through'>a</span>b", "b"),
        (
            "Thanks <span style='font-family:Wingdings'>J</span> <font face=Wingdings size=2>à</font> Just <b>do</b> it",
            "Thanks ☺ → Just do it",
        ),
        (
            "<p style='font-family:Wingdings'>ü<span style='font:7.0pt \"Times New Roman\"'>&nbsp; </span>\
             <span style='font-family:Calibri,Wingdings'>Just</span></p><p>Just</p>",
            "✔ Just\n\nJust",
        ),
        // After a block, row or cell, marks are opened again.
        (
            "<table><tr style='text-decoration: line-through; color:#999'><td>Lamp</td><td>$40</td></tr><tr><td>Chair<td>$60</table>",
            "~~Lamp~~\t~~$40~~\nChair\t$60",
        ),
        (
            "<table style='text-decoration:line-through'><tr><td>a<td>b<br>c</table>d",
            "~~a~~\t~~b~~ / ~~c~~\nd",
        ),
        (
            "<table><tbody style='text-decoration:line-through'><tr><td>a<td>b<tr><td>c<td>d</tbody></table>e",
            "~~a~~\t~~b~~\n~~c~~\t~~d~~\ne",
        ),
        (
            "<del><table><tr><td>a<td>b</table></del><s><table><tr><td>c<td>d</table></s>e",
            "~~a~~\t~~b~~\n~~c~~\t~~d~~\ne",
        ),
        (
            "<ul style='text-decoration:line-through'><li>a<ul><li>b</ul><li>c</ul><ol><li style='text-decoration:line-through'>d<li>e</ol>",
            "- ~~a~~\n  - ~~b~~\n- ~~c~~\n\n1. ~~d~~\n2. e",
        ),
        (
            "<div style='text-decoration:line-through'>a<p>b</p><blockquote>c</blockquote><pre>d\ne</pre></div>f",
            "~~a~~\n\n~~b~~\n\n> ~~c~~\n\n~~d~~\n~~e~~\n\nf",
        ),
        (
            "<p style='text-decoration:line-through'>gone<br>too</p><s><p>a</p><p>b</p></s><del><p>c</p></del>d",
            "~~gone~~\n~~too~~\n\n~~a~~\n\n~~b~~\n\n~~c~~\n\nd",
        ),
        ("<p><s>a</p><p>b</s>c</p>", "~~a~~\n\n~~b~~c"),
        ("<table><tr><td><s>a<td>b</table>c</s>d", "~~a~~\tb\ncd"),
        ("<s>a<table><tr><td>b</s>c</table></s>d", "~~a~~\n~~bc~~\nd"),
        ("a <s>b </s>c <s> d</s>e<s> </s>f", "a ~~b~~ c ~~d~~e f"),
        ("<s>a<hr>b</s>", "~~a~~\n---\n~~b~~"),
        (
            "<s>a <a href='https://a.test'>b</a></s> <a href='https://a.test'><s>a.test</s></a>",
            "~~a b (https://a.test)~~ ~~a.test~~",
        ),
        ("<s><img alt=Logo></s> <s><input value=x></s>", "~~[Logo]~~ ~~x~~"),
        ("$19<sup>99</sup>, 10<sup>6</sup>, H<sub>2</sub>O", "$19^99, 10^6, H_2O"),
        ("<p>Your code: <svg width=16 /> 482913</p>", "Your code: 482913"),
        ("<p>Your code: <svg><text>1</text></svg> 482913</p>", "Your code: 482913"),
        ("<noscript>Turn pictures on</noscript>", "Turn pictures on"),
        ("<ol start=4000000000><li>a</ol>", "1. a"),
    ]);
}

#[test]
fn quotes_are_marked() {
    table(&[
        ("yes<blockquote>Do you want it?</blockquote>no", "yes\n> Do you want it?\n\nno"),
        ("<blockquote>a<blockquote>b</blockquote>c</blockquote>", "> a\n>> b\n>\n> c"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        // Indented by Gmail's button, not quoted.
        ("a<blockquote style='margin:0 0 0 40px;border:none;padding:0px'>b</blockquote>", "a\nb"),
        ("a<div class=yahoo_quoted><div>Bo wrote:</div>b</div>", "a\n> Bo wrote:\n> b"),
        ("a<div name=quote style='margin:10px'>b</div>", "a\n> b"),
        ("<div>a</div><hr id=zwchr>From: Bo<br>b", "a\n> From: Bo\n> b"),
        ("a<div id=appendonsend></div><p>From: Bo</p>b", "a\n> From: Bo\n>\n> b"),
        (
            "a<div id=mail-editor-reference-message-container><hr><div id=divRplyFwdMsg>From: Bo</div>b</div>c",
            "a\n> From: Bo\n> b\n\nc",
        ),
        (
            "a<div class='x_ms-outlook-mobile-reference-message skipProofing'>From: Bo<div id=x_x_divRplyFwdMsg>From: Ada</div>b</div>",
            "a\n> From: Bo\n>> From: Ada\n>> b",
        ),
        (
            "<div>a</div><div id=appendonsend></div><hr><div id=divRplyFwdMsg>From: Bo</div><div>b</div>",
            "a\n> From: Bo\n> b",
        ),
        (
            "<div class=WordSection1><p class=MsoNormal>a</p><div><div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm'>\
             <p class=MsoNormal><b>From:</b> Bo<br><b>Sent:</b> Monday<br><b>Subject:</b> c</p></div></div><p class=MsoNormal>b</p></div>",
            "a\n> From: Bo\n> Sent: Monday\n> Subject: c\n> b",
        ),
    ]);
}

#[test]
fn quotes_are_known_despite_class_prefixes() {
    for prefix in
        ["", "x_", "x_x_", "m_123", "m_-8392837498", "ydp1", "ydp2d263a95", "yiv3699820886", "x_m_1ydpabyiv9"]
    {
        for mark in [
            format!("<div id='{prefix}yahoo_quoted_3699820886' class='{prefix}yahoo_quoted'>"),
            format!("<div class='a {prefix}yahoo_quoted b'>"),
            format!("<div id={prefix}yahoo_quoted_3699820886>"),
            format!("<div class={prefix}ms-outlook-mobile-reference-message>"),
            format!("<div id={prefix}mail-editor-reference-message-container>"),
            format!("<div name={prefix}quote>"),
            format!("<div id={prefix}divRplyFwdMsg>"),
            format!("<div id={prefix}appendonsend></div>"),
            format!("<hr id={prefix}zwchr>"),
        ] {
            assert_eq!(text(&format!("<div>a</div>{mark}Bo wrote:<br>b")), "a\n> Bo wrote:\n> b", "{mark}");
        }
        let html = format!("<p class='{prefix}MsoNormal'>a</p><p class='{prefix}MsoNormal'>b</p>");
        assert_eq!(text(&html), "a\nb", "{prefix}");
    }
    for name in ["yahoo_quoted_by_me", "not_yahoo_quoted", "ydpyahooyahoo_quoted", "m_xyahoo_quoted"] {
        assert_eq!(text(&format!("a<div class={name} id={name}>b</div>")), "a\nb", "{name}");
    }
}

#[test]
fn outlooks_line_is_known_in_each_notation() {
    for style in [
        "border:none;border-top:solid #B5C4DF 1.0pt;padding:3.0pt 0cm",
        "border-top: 1pt solid rgb(225, 225, 225)",
        "border-top: solid rgb(225,225,225) 1.0pt",
        "BORDER-TOP: RGB(181, 196, 223) 1PT SOLID",
        "border-width: 1pt medium medium; border-style: solid none none; border-color: rgb(225, 225, 225) currentcolor",
    ] {
        let html = format!("a<div style='{style}'>Von: Bo<br>Gesendet: Montag<br>An: Ada</div>b");
        assert_eq!(text(&html), "a\n> Von: Bo\n> Gesendet: Montag\n> An: Ada\n> b", "{style}");
        // A line drawn by a person.
        let html = format!("a<div style='{style}'><p>From: Berlin<br>To: Munich</div><p>b");
        assert_eq!(text(&html), "a\nFrom: Berlin\nTo: Munich\n\nb", "{style}");
    }
    for style in [
        "border-top: 2pt solid rgb(225, 225, 225)",
        "border-top: 1pt dashed #e1e1e1",
        "border-top: 1pt solid rgb(225, 225, 22)",
        "border-width: medium 1pt; border-style: solid; border-color: #e1e1e1",
        "border-bottom: 1pt solid #e1e1e1",
    ] {
        let html = format!("a<div style='{style}'>From: Bo</div>b");
        assert_eq!(text(&html), "a\nFrom: Bo\nb", "{style}");
    }
}

#[test]
fn no_break_spaces_indent() {
    table(&[
        ("a<br>&nbsp;&nbsp;b", "a\n  b"),
        ("a<br> &nbsp; &nbsp; <b>&nbsp;b</b> c&nbsp;&nbsp;d", "a\n     b c d"),
        ("<div>a</div><div>&nbsp;<a href='https://a.test'>b</a></div>", "a\n b (https://a.test)"),
        ("<blockquote>a<br>&nbsp;&nbsp;b</blockquote>", "> a\n>   b"),
        // Padding in cells and items, and filler after a preheader.
        ("<table><tr><td>a</td><td>&nbsp;b<br>&nbsp;c</td></tr></table>", "a\tb /  c"),
        ("<ul><li>&nbsp;&nbsp;a<br>&nbsp;b</ul>", "- a\n   b"),
        ("<div>a</div><div>&nbsp;&zwnj;&nbsp;&zwnj; b</div>", "a\nb"),
        ("a<br>&nbsp;&nbsp;<br>b", "a\n\nb"),
        ("a<br>&nbsp;<table><tr><td>b</td></tr></table>", "a\n\nb"),
    ]);
    let far = text(&format!("a<br>{}b", "&nbsp;".repeat(10_000)));
    assert_eq!(far, format!("a\n{}b", " ".repeat(80)));
}

#[test]
fn links_keep_their_addresses() {
    table(&[
        ("<a href='https://sho.test/3xyz'>SHO.TEST/3XYZ</a>", "SHO.TEST/3XYZ (https://sho.test/3xyz)"),
        ("<a href='https://Shop.test/a'>www.shop.test/a</a>", "www.shop.test/a"),
        ("See <a href='https://shop.example/o/4711'>here</a>.", "See here (https://shop.example/o/4711)."),
        ("<a href='https://a.test/'>a.test</a>", "a.test"),
        ("<a href='https://a.test/x'>https://a.test/x</a>", "https://a.test/x"),
        ("<a href='https://www.a.test'>http://A.test/</a>", "http://A.test/"),
        ("<a href='https://evil.test/'>https://a.test</a>", "https://a.test (https://evil.test/)"),
        (
            "<a href='mailto:ada@a.test?subject=x'>write</a> <a href='mailto:bo@b.test'>Bo@b.test</a>",
            "write (ada@a.test) Bo@b.test",
        ),
        (
            "<a href='tel:+49301234'>030 1234</a> <a href='tel:+49301234'>call</a>",
            "030 1234 (+49301234) call (+49301234)",
        ),
        (
            "<a href='#top'>up</a> <a href='javascript:x()'>x</a> <a href='cid:1'>y</a> <a name=z>z</a>",
            "up x y z",
        ),
        ("<a href='https://a.test/1'><img src=x alt=Logo></a>", "[Logo] (https://a.test/1)"),
        // Without words, the picture is the link.
        ("<a href='https://a.test/1'><img src=x></a>b", "https://a.test/1b"),
        ("<a href='https://a.test/1'><img src=x> </a> b", "https://a.test/1 b"),
        ("<a href='https://a.test/1'><img src=x width=1 height=1></a><a href='https://a.test/2'></a>b", "b"),
        (
            "<a href='https://a.test/1'><img src=x>Pay</a> <a href='#x'><img src=y></a>",
            "Pay (https://a.test/1)",
        ),
        ("<a href='https://a.test/1'><div>Title</div></a><div>b</div>", "Title (https://a.test/1)\nb"),
        (
            "<a href='https://a.test/1'>one<a href='https://a.test/2'>two",
            "one (https://a.test/1)two (https://a.test/2)",
        ),
        ("<a href='https://a.test/?a=1&amp;b=2'>x</a>", "x (https://a.test/?a=1&b=2)"),
        ("<a href='https://a.test/1'><table><tr><td>Pay</td></tr></table></a>", "Pay (https://a.test/1)"),
    ]);
}

#[test]
fn pictures_have_their_alternative_text() {
    table(&[
        ("<img alt='A red shirt'> 5", "[A red shirt] 5"),
        ("Hi <img alt='😀' class=an1>", "Hi 😀"),
        ("a<img alt='' src=x><img src=y>b", "ab"),
        ("a<img alt=open width=1 height=1>", "a"),
    ]);
}

#[test]
fn hidden_elements_are_left_out() {
    let styles = [
        "display:none",
        "DISPLAY : None !important",
        "display:none;max-height:0px;overflow:hidden;mso-hide:all",
        "visibility:hidden",
        "opacity:0",
        "max-height:0;overflow:hidden",
        "height:0px;overflow:hidden",
        "mso-hide:all;font-size:1px",
    ];
    for style in styles {
        let html = format!("<div style='{style}'>Preheader <p>and <span>more</span></p></div>Hello");
        assert_eq!(text(&html), "Hello", "{style}");
        let html = format!("<table><tr><td style='{style}'>no</td><td>yes</td></tr></table>");
        assert_eq!(text(&html), "yes", "{style}");
    }
    for style in [
        "display:block",
        "font-size:0",
        "opacity:0.5",
        "max-height:0",
        "overflow:hidden",
        "mso-hide:all",
        "opacity:",
    ] {
        assert_eq!(text(&format!("<div style='{style}'>shown</div>")), "shown", "{style}");
    }
    table(&[
        ("<span hidden>no</span>yes", "yes"),
        (
            "<head><title>no</title><style>p { color: red }</style></head><script>no()</script><body>yes",
            "yes",
        ),
        ("<!-- no --><![if !mso]>yes<![endif]><!--[if mso]>no<![endif]-->", "yes"),
        ("<xml><w:View>no</w:View></xml><template>no</template>yes", "yes"),
        ("<p style='display:none'>no<p>yes", "yes"),
        ("<b style='display:none'>no <b>no</b> no</b>yes", "yes"),
        (
            "<div style='visibility:hidden'>no<p style='visibility:visible'>yes</p>no<p style='visibility:visible'>yes</p></div>",
            "yes\n\nyes",
        ),
        (
            "<table style='visibility:hidden'><tr><td>no<td style='visibility:visible'>yes<tr><td><img alt=no></table>",
            "yes",
        ),
        ("<div style='display:none'><p style='visibility:visible'>no</p></div>yes", "yes"),
        // Filler after a preheader.
        ("News&#847; &zwnj; &nbsp; &#8199; &shy; &#847;&zwnj;&nbsp; today", "News today"),
        ("Donau&shy;dampf&#8203;schiff&#65279;", "Donaudampfschiff"),
        ("👨\u{200d}👩 می\u{200c}خواهم", "👨\u{200d}👩 می\u{200c}خواهم"),
    ]);
}

#[test]
fn hidden_elements_end_as_in_a_browser() {
    table(&[
        (
            "<p>Before</p><select><option>Red<option selected>Blue</select><p>After: cancel order 5</p>",
            "Before\n\nAfter: cancel order 5",
        ),
        (
            "<table><tr><td>Size <select><option>S<option selected>M</select> please</td><td>2 pcs</td></tr></table><p>Thanks</p>",
            "Size please\t2 pcs\n\nThanks",
        ),
        ("<p>a<select><optgroup label=x><option>1<optgroup label=y><option>2</select>b", "ab"),
        ("<p>a</p><template><p>x</template><p>b</p>", "a\n\nb"),
        ("<template><div><template><p>x</template></div><table><tr><td>y</template>b", "b"),
        ("<p>a<video><source src=x><p>Your program shows no films<div></video>b", "ab"),
        ("a<audio><div>x</audio>b<canvas><table><tr><td>y</canvas>c<datalist><option>z</datalist>d", "abcd"),
        ("a<object><p>shown</p></object>b", "a\n\nshown\n\nb"),
        ("a<noscript><p>b</p><img alt=c></noscript>d", "a\n\nb\n\n[c]d"),
        ("a<iframe><p>x</iframe>b<noframes><p>x</noframes>c<title><p>x</title>d<style>x</style>e", "abcde"),
        ("<head><title>x</title><meta charset=utf-8><p>a", "a"),
        ("<textarea><p>a</textarea><p>b", "<p>a\n\nb"),
        // Missing end tags.
        ("<table><tr><td>a<select><option>x</td><td>b</td></tr></table>c", "a\tb\nc"),
        ("<table><tr><td>a<select><option>x<td>b<tr><td>c<video>x</table>d", "a\tb\nc\nd"),
        ("<div>a<select><option>x</div>b<div><video>x</div>c", "a\nb\nc"),
        ("a<select><option>x<select>b<select><option>x<input value=c>d", "ab c d"),
        ("a<svg><path d=x><circle><p>b</p>c", "a\n\nb\n\nc"),
        ("<div>a<svg><path d=x></div>b", "a\nb"),
        ("<xml><w:View>x</w:View><o:p><p>a", "a"),
        ("a<noscript>b<p>c", "ab\n\nc"),
        ("a<object>b<p>c", "ab\n\nc"),
        ("a<template>x<p>y", "a"),
        // Drawings and formulas have self-closing elements, and reuse names of HTML.
        ("a<svg><style/><script/><title/><g/></svg>b", "ab"),
        (
            "a<svg><title>x</title><desc><p>x</p></desc><foreignObject><div>x</div></foreignObject></svg>b",
            "ab",
        ),
        ("a<svg><svg/><svg><g></svg>x</svg>b", "ab"),
        ("<b>a <math><mspace/><mi>x</mi><mo/><script/></math> b</b> c", "a x b c"),
        ("<math><mi>x</mi><p>a<p/>b", "x\n\na\n\nb"),
    ]);
    for count in [250, 5_000] {
        for (begin, end) in [
            ("<svg>", "</svg>"),
            ("<select>", "</select>"),
            ("<template>", "</template>"),
            ("<video>", "</video>"),
            ("<xml>", "</xml>"),
            ("<math>", "</math>"),
        ] {
            let inner = "<rect x=1 />".repeat(count);
            assert_eq!(text(&format!("<p>a</p>{begin}{inner}{end}<p>b</p>")), "a\n\nb", "{begin}");
        }
        for inner in ["<option>x", "<option>x</option>", "<rect>"] {
            let html = format!("a<select>{}</select>b", inner.repeat(count));
            assert_eq!(text(&html), "ab", "{inner}");
        }
    }
}

#[test]
fn form_fields_show_their_values() {
    table(&[
        (
            "<label><input type=radio checked>Yes</label> <label><input type=radio>No</label><br>Name: <input value='Eva Meier' readonly>!",
            "[x] Yes [ ] No\nName: Eva Meier !",
        ),
        ("a<input type=CHECKBOX checked=''>b<input type=checkbox>c", "a [x] b [ ] c"),
        ("a<input type=hidden value=x><input type=password value=x><input type=file value=x>b", "ab"),
        ("a<input><input type=email value=ada@a.test><input type=submit value=Send>", "a ada@a.test [Send]"),
        ("a<input type=image alt=Go src=x><input value=x style='display:none'>", "a[Go]"),
        (
            "<table><tr><td>Yes<td><input type=checkbox checked><tr><td>No<td><input type=checkbox></table>",
            "Yes\t[x]\nNo\t[ ]",
        ),
    ]);
}

#[test]
fn visible_blanks_are_kept() {
    table(&[
        ("<pre>a  b\n\n  c\n</pre>d", "a  b\n\n  c\n\nd"),
        ("<div style='white-space:pre-wrap'>a\n  b</div>c", "a\n  b\nc"),
        ("<pre>a <b>b</b>\nc</pre>", "a b\nc"),
        ("<textarea>a\nb</textarea>", "a\nb"),
        ("1&nbsp;000&nbsp;EUR", "1 000 EUR"),
        ("日本\u{3000}語", "日本\u{3000}語"),
    ]);
}

#[test]
fn entities_are_decoded() {
    table(&[
        ("&lt;b&gt; &amp;amp; &quot;x&quot; &#39;", "<b> &amp; \"x\" '"),
        ("&auml;&Ouml;&euro;&hellip;&#x1F600;&#128;", "äÖ€…😀€"),
        ("&copy 2026 &unknown; & &; a&b", "© 2026 &unknown; & &; a&b"),
        ("&#0;&#xD800;&#99999999;", "\u{fffd}\u{fffd}\u{fffd}"),
    ]);
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = format!("{}deep{}<p>after</p>", "<div>".repeat(30_000), "</div>".repeat(30_000));
    assert_eq!(text(&deep), "deep\n\nafter");
    let quotes = text(&format!("{}a<br>b", "<blockquote>".repeat(1_000)));
    assert_eq!(quotes, ">>>>>> a\n>>>>>> b");
    let long = text(&format!("<b>{}</b>", "word ".repeat(200)).repeat(3_000));
    assert!((MAX_OUTPUT / 2..MAX_OUTPUT + 2_000).contains(&long.len()), "{}", long.len());
    let cells = "<tr><td colspan=9999 rowspan=9999>x<td>y".repeat(60_000);
    let cells = text(&format!("<table>{cells}</table>"));
    assert!(cells.starts_with(&format!("x{}y\n", "\t".repeat(50))) && cells.len() <= MAX_OUTPUT * 2);
    let attributes: String = (0..100_000).map(|n| format!(" a{n}=b")).collect();
    assert_eq!(text(&format!("<div{attributes}>x</div>")), "x");
}

#[test]
fn a_charset_may_stand_in_the_html() {
    for (html, name) in [
        ("<meta charset=\"gbk\">", Some("gbk")),
        ("<META http-equiv=Content-Type content='text/html; CHARSET=big5'>", Some("big5")),
        ("<meta charset=>", None),
        ("<meta charset=UTF-16>", None),
        ("<meta charset=unicode>", None),
        ("<p>hi", None),
    ] {
        assert_eq!(declared_charset(html.as_bytes()), name, "{html}");
    }
}
