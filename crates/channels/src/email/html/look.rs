//! What an element is, and what its attributes say about how it looks.

/// The attributes that count.
const ATTRIBUTES: [&str; 16] = [
    "alt", "checked", "class", "colspan", "face", "height", "hidden", "href", "id", "name", "rowspan",
    "start", "style", "type", "value", "width",
];

/// What programs put before each class and id when they quote a mail or show it, and what stands in it: `x_`, `m_-123`, `ydp1a2b`, `yiv123`.
const PREFIXES: [(&str, &str); 4] =
    [("x_", ""), ("m_", "-0123456789"), ("ydp", "0123456789abcdef"), ("yiv", "0123456789")];

/// How many columns or rows a cell may stand in: browsers take 1000, and a stranger could make millions of empty cells with them.
const SPAN: u32 = 50;

/// Whether an element has no end.
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

/// Whether nothing in an element is shown.
pub fn hides(name: &str) -> bool {
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

/// Whether an element is a formula, or holds words or HTML in one.
pub fn is_formula(name: &str) -> bool {
    matches!(name, "math" | "mi" | "mo" | "mn" | "ms" | "mtext" | "annotation-xml")
}

/// Whether an element can't stand in a drawing or formula, which it ends where its end was forgotten.
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

/// Whether an element stands in no line.
pub fn is_block(name: &str) -> bool {
    gap(name) > 0
        || matches!(
            name,
            "html" | "body" | "head" | "tbody" | "thead" | "tfoot" | "td" | "th" | "colgroup" | ""
        )
}

/// Whether the end of an element of a name is not looked for outside of this one.
pub fn holds_in(name: &str, ended: &str) -> bool {
    match ended {
        "html" | "body" | "table" | "tbody" | "thead" | "tfoot" => false,
        "tr" | "td" | "th" => name == "table",
        "li" => matches!(name, "ul" | "ol" | "menu" | "td" | "th"),
        _ => matches!(name, "td" | "th"),
    }
}

/// What stands before and after struck words.
pub const STRUCK: &str = "~~";

/// Whether an element strikes all words up to its end, wherever that is.
pub fn strikes(name: &str) -> bool {
    matches!(name, "s" | "strike")
}

/// The sign without which the words of an element would mean something else: `$19<sup>99</sup>` is not `$1999`.
pub fn sign(name: &str) -> Option<&'static str> {
    match name {
        "sup" => Some("^"),
        "sub" => Some("_"),
        _ => None,
    }
}

/// The sign that the font Wingdings has in place of a letter: Outlook writes `J` for a smile, and `à` for an arrow.
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

/// The lines that an element is apart from others by.
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

/// How the items of a list are counted.
#[derive(Clone, Copy, Debug, Default)]
pub enum Count {
    #[default]
    Digits,
    Letters,
    Capitals,
    Roman,
    RomanCapitals,
}

impl Count {
    /// What stands before the item of this number: `4. `, `d. `, `iv. `
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

/// Beyond those that there are, which would become long, digits.
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

/// An element as it begins.
#[derive(Debug, Default)]
pub struct Tag {
    pub name: String,
    values: [Option<String>; ATTRIBUTES.len()],
    /// The attribute whose value comes next.
    at: Option<usize>,
}

impl Tag {
    pub fn named(name: &[u8]) -> Self {
        Self { name: String::from_utf8_lossy(name).into_owned(), ..Self::default() }
    }

    /// An attribute begins. The first of a name counts.
    pub fn attribute(&mut self, name: &[u8]) {
        let known = ATTRIBUTES.iter().position(|known| known.as_bytes() == name);
        self.at = known.filter(|at| self.values.get(*at).is_some_and(Option::is_none));
        if let Some(value) = self.at.and_then(|at| self.values.get_mut(at)) {
            *value = Some(String::new());
        }
    }

    /// The value of the present attribute.
    pub fn value(&mut self, value: &[u8]) {
        if let Some(at) = self.at.and_then(|at| self.values.get_mut(at)) {
            *at = Some(String::from_utf8_lossy(value).into_owned());
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let at = ATTRIBUTES.iter().position(|known| *known == name)?;
        self.values.get(at)?.as_deref()
    }

    /// A number. Those of items may be large, which makes each line below them longer.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.get(name)?.trim().parse().ok().filter(|number| *number < 10_000)
    }

    /// How it counts its items.
    pub fn count(&self) -> Count {
        let style = self.style("list-style-type").or_else(|| self.style("list-style")).unwrap_or_default();
        let is = |names: &[&str]| style.split_ascii_whitespace().any(|word| names.contains(&word));
        match self.get("type").unwrap_or_default() {
            _ if is(&["lower-alpha", "lower-latin"]) => Count::Letters,
            _ if is(&["upper-alpha", "upper-latin"]) => Count::Capitals,
            _ if is(&["lower-roman"]) => Count::Roman,
            _ if is(&["upper-roman"]) => Count::RomanCapitals,
            _ if is(&["decimal"]) => Count::Digits,
            "a" => Count::Letters,
            "A" => Count::Capitals,
            "i" => Count::Roman,
            "I" => Count::RomanCapitals,
            _ => Count::Digits,
        }
    }

    /// The value of a property of its style, in lower case.
    fn style(&self, property: &str) -> Option<String> {
        let mut declared = self.get("style")?.split(';').filter_map(|one| one.split_once(':'));
        let found = declared.rfind(|(name, _)| name.trim().eq_ignore_ascii_case(property))?;
        Some(found.1.to_ascii_lowercase().replace("!important", "").trim().to_owned())
    }

    fn is_style(&self, property: &str, value: &str) -> bool {
        self.style(property).is_some_and(|found| found == value)
    }

    /// Whether a property of its style is nothing: `0`, `0px`, `0 0 0`.
    fn is_zero(&self, property: &str) -> bool {
        self.style(property).is_some_and(|found| {
            !found.is_empty() && found.split_ascii_whitespace().all(|size| size_of(size) < f32::EPSILON)
        })
    }

    /// Whether a person sees nothing of it.
    pub fn is_hidden(&self) -> bool {
        let is_tiny = |property: &str| {
            self.style(property).is_some_and(|size| size_of(&size) <= 1.0 && !size.ends_with('%'))
        };
        self.get("hidden").is_some()
            || self.is_style("display", "none")
            || self.is_zero("opacity")
            || self.is_style("overflow", "hidden") && (self.is_zero("max-height") || self.is_zero("height"))
            // Outlook shows something else in place of what only has this: a button.
            || self.is_style("mso-hide", "all") && (is_tiny("font-size") || is_tiny("line-height"))
    }

    /// Whether its words are not visible, though they have their place. `None`: as those around it.
    pub fn is_veiled(&self) -> Option<bool> {
        let style = self.style("visibility")?;
        match &*style {
            "hidden" | "collapse" => Some(true),
            "visible" => Some(false),
            _ => None,
        }
    }

    /// Whether it strikes the words in it.
    pub fn is_struck(&self) -> bool {
        let strikes = |property| self.style(property).is_some_and(|style| style.contains("line-through"));
        self.name == "del" || strikes("text-decoration") || strikes("text-decoration-line")
    }

    /// Whether its font is Wingdings. `None`: it has the one around it.
    pub fn is_wingdings(&self) -> Option<bool> {
        let face = || self.get("face").map(str::to_ascii_lowercase);
        let fonts = self.style("font-family").or_else(face).or_else(|| self.style("font"))?;
        let first = fonts.split(',').next().unwrap_or_default();
        Some(first.trim_end_matches([' ', '"', '\'']).ends_with("wingdings"))
    }

    /// Whether blanks and line ends are shown as they are.
    pub fn keeps_blanks(&self) -> bool {
        matches!(&*self.name, "pre" | "textarea" | "xmp" | "plaintext" | "listing")
            || self.style("white-space").is_some_and(|style| style.starts_with("pre"))
    }

    /// The lines that it is apart from others by.
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

    /// Whether it holds the words of another mail.
    pub fn quotes(&self) -> bool {
        match &*self.name {
            // Without a line beside it, it is only further to the right.
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

    /// Whether it has this id, also with a number at its end (`yahoo_quoted_3699820886`).
    fn has_id(&self, wanted: &str) -> bool {
        let id = self.get("id").unwrap_or_default().trim();
        let id =
            id.rsplit_once('_').filter(|(_, number)| number.parse::<u64>().is_ok()).map_or(id, |(id, _)| id);
        is_named(id, wanted)
    }

    /// Whether it has the line above it that Outlook draws above another mail: `border-top: solid #E1E1E1 1.0pt`, in any order, or each
    /// in a property of its own.
    fn has_outlooks_line(&self) -> bool {
        // The first of four values is the upper side's.
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

    /// Whether it and all that follows is another mail: above it, Outlook and Zimbra have the answer.
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

    /// Whether only its line says so: people draw such lines, too.
    pub fn may_quote_the_rest(&self) -> bool {
        !self.is_named_quote() && self.name == "div" && self.has_outlooks_line()
    }

    /// How many columns and rows a cell stands in.
    pub fn spans(&self) -> (usize, usize) {
        let span = |name| self.number(name).map_or(1, |span| span.clamp(1, SPAN) as usize);
        (span("colspan"), span("rowspan"))
    }

    /// Whether it is an invisible picture.
    pub fn is_dot(&self) -> bool {
        let is_dot = |side: &str| self.get(side).is_some_and(|size| matches!(size.trim(), "0" | "1" | "1px"));
        is_dot("width") && is_dot("height")
    }

    /// The words that stand for it, if it has no end.
    pub fn words(&self) -> Option<String> {
        match &*self.name {
            "img" => self.picture(),
            "input" => self.input(),
            _ => None,
        }
    }

    /// What a person sees of a field: whether it is checked, or its value.
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

    /// The words that stand for a picture.
    fn picture(&self) -> Option<String> {
        let words = self.get("alt")?.trim();
        if words.is_empty() || self.is_dot() {
            return None;
        }
        // An emoji stands for itself.
        let is_sign = !words.chars().any(char::is_alphanumeric);
        Some(if is_sign { words.to_owned() } else { format!("[{words}]") })
    }
}

/// Whether a class or id is this one, also with what programs put before it.
fn is_named(name: &str, wanted: &str) -> bool {
    name.strip_suffix(wanted).is_some_and(is_prefix)
}

/// Whether all this is what programs put before classes and ids.
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

/// The number that a size begins with. Others are large.
fn size_of(size: &str) -> f32 {
    let number = size.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(size.len());
    size.get(..number).and_then(|number| number.parse().ok()).unwrap_or(f32::MAX)
}
