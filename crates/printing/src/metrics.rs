//! A page of metrics in Prometheus's text format, and the table of what it shows.

use std::fmt::Write as _;

/// The media type of a page.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One kind of measurement.
#[derive(Debug)]
pub struct Family {
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    pub labels: &'static [&'static str],
    pub about: &'static str,
}

/// Defines `FAMILIES`, one family per line, and a constant for each name.
#[macro_export]
macro_rules! families {
    ($($constant:ident = $name:literal, $kind:literal, [$($label:literal),*], $about:literal;)+) => {
        $(#[doc = $about]
        pub const $constant: &str = $name;)+
        /// All metrics of this program.
        pub const FAMILIES: &[$crate::metrics::Family] = &[$($crate::metrics::Family {
            name: $name,
            kind: $kind,
            labels: &[$($label),*],
            about: $about,
        },)+];
    };
}

/// A page that is being written.
#[derive(Debug)]
pub struct Page {
    text: String,
    families: &'static [Family],
}

impl Page {
    /// A page of these families, which begins with this text.
    #[must_use]
    pub fn new(text: String, families: &'static [Family]) -> Self {
        Self { text, families }
    }

    /// Writes one value. The values of a family must be consecutive.
    pub fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        if !self.text.contains(&format!("# TYPE {name} "))
            && let Some(Family { kind, about, .. }) = self.families.iter().find(|family| family.name == name)
        {
            let _ = writeln!(self.text, "# HELP {name} {about}\n# TYPE {name} {kind}");
        }
        self.text.push_str(name);
        for (n, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{label}=\"{value}\"", if n == 0 { "{" } else { "," });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}
