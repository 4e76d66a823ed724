//! Elements, and the appearance that their attributes give them.

/// Relevant attributes.
const ATTRIBUTES: [&str; 16] = [
    "alt", "checked", "class", "colspan", "face", "height", "hidden", "href", "id", "name", "rowspan",
    "start", "style", "type", "value", "width",
];

/// Prefixes of classes and ids in quoted or displayed mails, with their variable characters: `x_`, `m_-123`, `ydp1a2b`,
/// `yiv123`.
const PREFIXES: [(&str, &str); 4] =
    [("x_", ""), ("m_", "-0123456789"), ("ydp", "0123456789abcdef"), ("yiv", "0123456789")];

/// Maximum columns or rows of a cell: browsers allow 1000, by which a stranger could make millions of empty cells.
const SPAN: u32 = 50;

/// Whether an element is void.
pub fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Whether an element's content is hidden.
pub fn hides_content(name: &str) -> bool {
    matches!(
        name,
        "style"
            | "script"
            | "title"
            | "template"
            | "iframe"
            | "noembed"
            | "noframes"
            | "select"
            | "datalist"
            | "svg"
            | "canvas"
            | "video"
            | "audio"
            | "xml"
    )
}

/// Whether an element is a formula, or contains text or HTML in one.
pub fn is_formula(name: &str) -> bool {
    matches!(name, "math" | "mi" | "mo" | "mn" | "ms" | "mtext" | "annotation-xml")
}

/// Whether an element can't be inside a drawing or formula, and so ends an unclosed one.
pub fn ends_drawing(name: &str) -> bool {
    let is_formatting = || {
        matches!(
            name,
            "b" | "big"
                | "body"
                | "br"
                | "code"
                | "em"
                | "embed"
                | "head"
                | "i"
                | "img"
                | "meta"
                | "nobr"
                | "ruby"
                | "s"
                | "small"
                | "span"
                | "strike"
                | "strong"
                | "sub"
                | "sup"
                | "tt"
                | "u"
                | "var"
        )
    };
    gap(name) > 0 || is_formatting()
}

/// Whether an element is a block.
pub fn is_block(name: &str) -> bool {
    gap(name) > 0
        || matches!(
            name,
            "html" | "body" | "head" | "tbody" | "thead" | "tfoot" | "td" | "th" | "colgroup" | ""
        )
}

/// Whether the search for the start of `ended` stops at this element.
pub fn stops_search(name: &str, ended: &str) -> bool {
    match ended {
        "html" | "body" | "table" | "tbody" | "thead" | "tfoot" => false,
        "tr" | "td" | "th" => name == "table",
        "li" => matches!(name, "ul" | "ol" | "menu" | "td" | "th"),
        _ => matches!(name, "td" | "th"),
    }
}

/// Mark around struck text.
pub const STRUCK: &str = "~~";

/// Whether an element strikes all text up to its end tag, across other elements.
pub fn strikes(name: &str) -> bool {
    matches!(name, "s" | "strike")
}

/// A sign that preserves the meaning of an element's text: `$19<sup>99</sup>` is not `$1999`.
pub fn meaning_sign(name: &str) -> Option<&'static str> {
    match name {
        "sup" => Some("^"),
        "sub" => Some("_"),
        _ => None,
    }
}

/// The symbol of a letter in Wingdings: Outlook writes `J` for a smile, and `à` for an arrow.
pub const fn wingding(letter: char) -> char {
    match letter {
        'J' => '☺',
        'K' => '😐',
        'L' => '☹',
        'C' => '👍',
        'D' => '👎',
        'F' => '☞',
        'à' | 'è' => '→',
        'ß' => '←',
        'á' => '↑',
        'â' => '↓',
        'ü' => '✔',
        'û' => '✘',
        'þ' => '☑',
        'ý' => '☒',
        'o' | 'q' | '¨' => '☐',
        'l' => '●',
        'n' | '§' => '▪',
        'v' => '❖',
        'Ø' => '➢',
        '(' => '☎',
        '*' => '✉',
        other => other,
    }
}

/// Line ends around an element.
fn gap(name: &str) -> usize {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "pre" | "ul" | "ol" | "menu" | "dl" | "figure"
        | "fieldset" => 2,
        "blockquote" | "div" | "table" | "caption" | "tr" | "li" | "dt" | "dd" | "section" | "article"
        | "header" | "footer" | "main" | "nav" | "aside" | "address" | "center" | "form" | "legend"
        | "figcaption" | "details" | "summary" | "option" | "hr" | "textarea" | "xmp" | "plaintext"
        | "listing" => 1,
        _ => 0,
    }
}

/// Numbering of a list.
#[derive(Clone, Copy, Debug, Default)]
pub enum Numbering {
    #[default]
    Digits,
    Letters,
    Capitals,
    Roman,
    RomanCapitals,
}

impl Numbering {
    /// An item's number with its separator: `4. `, `d. `, `iv. `
    pub fn sign(self, number: u32) -> String {
        let sign = match self {
            Self::Digits => number.to_string(),
            Self::Letters => letters(number),
            Self::Capitals => letters(number).to_ascii_uppercase(),
            Self::Roman => roman(number),
            Self::RomanCapitals => roman(number).to_ascii_uppercase(),
        };
        sign + ". "
    }
}

/// `a` to `z`, `aa`, `ab` …
fn letters(number: u32) -> String {
    let (mut letters, mut rest) = (String::new(), number);
    while let Some(before) = rest.checked_sub(1) {
        letters.extend(char::from_digit(before % 26 + 10, 36));
        rest = before / 26;
    }
    if letters.is_empty() { number.to_string() } else { letters.chars().rev().collect() }
}

/// Digits for numbers without a Roman form, or with a long one.
fn roman(number: u32) -> String {
    const SIGNS: [(u32, &str); 13] = [
        (1_000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    if !(1..4_000).contains(&number) {
        return number.to_string();
    }
    let (mut roman, mut rest) = (String::new(), number);
    for (value, sign) in SIGNS {
        while let Some(less) = rest.checked_sub(value) {
            roman.push_str(sign);
            rest = less;
        }
    }
    roman
}

/// A start tag.
#[derive(Debug, Default)]
pub struct Tag {
    pub name: String,
    values: [Option<String>; ATTRIBUTES.len()],
    /// The attribute of the next value.
    at: Option<usize>,
}

impl Tag {
    pub fn named(name: &[u8]) -> Self {
        Self { name: String::from_utf8_lossy(name).into_owned(), ..Self::default() }
    }

    /// Begins an attribute. The first of a name counts.
    pub fn attribute(&mut self, name: &[u8]) {
        let known = ATTRIBUTES.iter().position(|known| known.as_bytes() == name);
        self.at = known.filter(|at| self.values.get(*at).is_some_and(Option::is_none));
        if let Some(value) = self.at.and_then(|at| self.values.get_mut(at)) {
            *value = Some(String::new());
        }
    }

    /// Sets the current attribute's value.
    pub fn value(&mut self, value: &[u8]) {
        if let Some(at) = self.at.and_then(|at| self.values.get_mut(at)) {
            *at = Some(String::from_utf8_lossy(value).into_owned());
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let at = ATTRIBUTES.iter().position(|known| *known == name)?;
        self.values.get(at)?.as_deref()
    }

    /// A numeric attribute. Large item numbers would lengthen every line below.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.get(name)?.trim().parse().ok().filter(|number| *number < 10_000)
    }

    /// The list's numbering.
    pub fn numbering(&self) -> Numbering {
        let style = self.style("list-style-type").or_else(|| self.style("list-style")).unwrap_or_default();
        let is = |names: &[&str]| style.split_ascii_whitespace().any(|word| names.contains(&word));
        match self.get("type").unwrap_or_default() {
            _ if is(&["lower-alpha", "lower-latin"]) => Numbering::Letters,
            _ if is(&["upper-alpha", "upper-latin"]) => Numbering::Capitals,
            _ if is(&["lower-roman"]) => Numbering::Roman,
            _ if is(&["upper-roman"]) => Numbering::RomanCapitals,
            _ if is(&["decimal"]) => Numbering::Digits,
            "a" => Numbering::Letters,
            "A" => Numbering::Capitals,
            "i" => Numbering::Roman,
            "I" => Numbering::RomanCapitals,
            _ => Numbering::Digits,
        }
    }

    /// A style property, in lower case.
    fn style(&self, property: &str) -> Option<String> {
        let mut declared = self.get("style")?.split(';').filter_map(|one| one.split_once(':'));
        let found = declared.rfind(|(name, _)| name.trim().eq_ignore_ascii_case(property))?;
        Some(found.1.to_ascii_lowercase().replace("!important", "").trim().to_owned())
    }

    fn is_style(&self, property: &str, value: &str) -> bool {
        self.style(property).is_some_and(|found| found == value)
    }

    /// Whether a style property is zero: `0`, `0px`, `0 0 0`.
    fn is_zero(&self, property: &str) -> bool {
        self.style(property).is_some_and(|found| {
            !found.is_empty() && found.split_ascii_whitespace().all(|size| size_of(size) < f32::EPSILON)
        })
    }

    /// Whether the element is hidden.
    pub fn is_hidden(&self) -> bool {
        let is_tiny = |property: &str| {
            self.style(property).is_some_and(|size| size_of(&size) <= 1.0 && !size.ends_with('%'))
        };
        self.get("hidden").is_some()
            || self.is_style("display", "none")
            || self.is_zero("opacity")
            || self.is_style("overflow", "hidden") && (self.is_zero("max-height") || self.is_zero("height"))
            // With only this, Outlook shows something else instead: a button.
            || self.is_style("mso-hide", "all") && (is_tiny("font-size") || is_tiny("line-height"))
    }

    /// Whether the text is invisible but keeps its space. `None`: inherited.
    pub fn is_invisible(&self) -> Option<bool> {
        let style = self.style("visibility")?;
        match &*style {
            "hidden" | "collapse" => Some(true),
            "visible" => Some(false),
            _ => None,
        }
    }

    /// Whether the element strikes its text.
    pub fn is_struck(&self) -> bool {
        let strikes = |property| self.style(property).is_some_and(|style| style.contains("line-through"));
        self.name == "del" || strikes("text-decoration") || strikes("text-decoration-line")
    }

    /// Whether the font is Wingdings. `None`: inherited.
    pub fn is_wingdings(&self) -> Option<bool> {
        let face = || self.get("face").map(str::to_ascii_lowercase);
        let fonts = self.style("font-family").or_else(face).or_else(|| self.style("font"))?;
        let first = fonts.split(',').next().unwrap_or_default();
        Some(first.trim_end_matches([' ', '"', '\'']).ends_with("wingdings"))
    }

    /// Whether blanks and line ends are preserved.
    pub fn preserves_blanks(&self) -> bool {
        matches!(&*self.name, "pre" | "textarea" | "xmp" | "plaintext" | "listing")
            || self.style("white-space").is_some_and(|style| style.starts_with("pre"))
    }

    /// Line ends around the element.
    pub fn gap(&self) -> usize {
        let gap = gap(&self.name);
        // Outlook's paragraphs are lines.
        let is_line = || {
            let class = self.get("class").unwrap_or_default();
            let is_outlooks = class.split_once("Mso").is_some_and(|(before, _)| is_prefix(before));
            self.name == "p" && (is_outlooks || self.is_zero("margin"))
        };
        if gap > 1 && is_line() { 1 } else { gap }
    }

    /// Whether the element contains another mail.
    pub fn quotes(&self) -> bool {
        match &*self.name {
            // Without a border, it is only indented.
            "blockquote" => !self.is_style("border", "none"),
            "div" => {
                let classes = self.get("class").unwrap_or_default();
                let is_quote = |class: &str| {
                    is_named(class, "yahoo_quoted") || is_named(class, "ms-outlook-mobile-reference-message")
                };
                classes.split_ascii_whitespace().any(is_quote)
                    || self.get("name").is_some_and(|name| is_named(name, "quote"))
                    || self.has_id("mail-editor-reference-message-container")
                    || self.has_id("yahoo_quoted")
            }
            _ => false,
        }
    }

    /// Whether the element has this id, possibly with a numeric suffix (`yahoo_quoted_3699820886`).
    fn has_id(&self, wanted: &str) -> bool {
        let id = self.get("id").unwrap_or_default().trim();
        let id =
            id.rsplit_once('_').filter(|(_, number)| number.parse::<u64>().is_ok()).map_or(id, |(id, _)| id);
        is_named(id, wanted)
    }

    /// Whether the element has Outlook's line above a quoted mail: `border-top: solid #E1E1E1 1.0pt`, in any order, or
    /// as separate properties.
    fn has_outlooks_line(&self) -> bool {
        // The first of four values is the top side's.
        let top = |property: &str| {
            let sides = self.style(property).unwrap_or_default().replace(", ", ",");
            sides.split_ascii_whitespace().next().unwrap_or_default().to_owned()
        };
        let line = match self.style("border-top") {
            Some(line) => line.replace(", ", ","),
            None => ["border-width", "border-style", "border-color"].map(top).join(" "),
        };
        let has = |words: &[&str]| line.split_ascii_whitespace().any(|word| words.contains(&word));
        has(&["solid"])
            && has(&["1pt", "1.0pt"])
            && has(&["#e1e1e1", "rgb(225,225,225)", "#b5c4df", "rgb(181,196,223)"])
    }

    /// Whether another mail begins here and takes the rest: Outlook and Zimbra put the reply above it.
    pub fn quotes_the_rest(&self) -> bool {
        match &*self.name {
            "div" => self.is_named_quote() || self.has_outlooks_line(),
            "hr" => self.has_id("zwchr"),
            _ => false,
        }
    }

    fn is_named_quote(&self) -> bool {
        self.has_id("divRplyFwdMsg") || self.has_id("appendonsend")
    }

    /// Whether only the line indicates a quote: people draw such lines, too.
    pub fn may_quote_the_rest(&self) -> bool {
        !self.is_named_quote() && self.name == "div" && self.has_outlooks_line()
    }

    /// A cell's columns and rows.
    pub fn spans(&self) -> (usize, usize) {
        let span = |name| self.number(name).map_or(1, |span| span.clamp(1, SPAN) as usize);
        (span("colspan"), span("rowspan"))
    }

    /// Whether this is an invisible picture.
    pub fn is_invisible_pixel(&self) -> bool {
        let is_invisible_pixel =
            |side: &str| self.get(side).is_some_and(|size| matches!(size.trim(), "0" | "1" | "1px"));
        is_invisible_pixel("width") && is_invisible_pixel("height")
    }

    /// The text for a void element.
    pub fn replacement_text(&self) -> Option<String> {
        match &*self.name {
            "img" => self.picture(),
            "input" => self.input(),
            _ => None,
        }
    }

    /// A form field's state or value.
    fn input(&self) -> Option<String> {
        let value = || self.get("value").map(str::trim).filter(|value| !value.is_empty());
        match &*self.get("type").unwrap_or_default().trim().to_ascii_lowercase() {
            "checkbox" | "radio" => {
                Some(if self.get("checked").is_some() { " [x] " } else { " [ ] " }.to_owned())
            }
            "image" => self.picture(),
            "hidden" | "password" | "file" | "color" | "range" => None,
            "submit" | "button" | "reset" => value().map(|value| format!(" [{value}] ")),
            _ => value().map(|value| format!(" {value} ")),
        }
    }

    /// A picture's alternative text.
    fn picture(&self) -> Option<String> {
        let words = self.get("alt")?.trim();
        if words.is_empty() || self.is_invisible_pixel() {
            return None;
        }
        // An emoji needs no brackets.
        let is_sign = !words.chars().any(char::is_alphanumeric);
        Some(if is_sign { words.to_owned() } else { format!("[{words}]") })
    }
}

/// Whether a class or id is this one, possibly prefixed.
fn is_named(name: &str, wanted: &str) -> bool {
    name.strip_suffix(wanted).is_some_and(is_prefix)
}

/// Whether a text consists of known prefixes.
fn is_prefix(mut name: &str) -> bool {
    let after = |name: &str| {
        PREFIXES.iter().find_map(|(prefix, letters)| {
            Some(name.strip_prefix(prefix)?.trim_start_matches(|c| letters.contains(c)).len())
        })
    };
    while let Some(rest) = after(name).and_then(|length| name.get(name.len() - length..)) {
        name = rest;
    }
    name.is_empty()
}

/// The leading number of a size, or the maximum.
fn size_of(size: &str) -> f32 {
    let number = size.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(size.len());
    size.get(..number).and_then(|number| number.parse().ok()).unwrap_or(f32::MAX)
}
