//! Charsets: all of the standard, and common aliases.

use super::*;

/// A name of each standard encoding, and a word in it.
const STANDARD: [(&str, &str, &[u8]); 38] = [
    ("utf-8", "Grüße", b"Gr\xc3\xbc\xc3\x9fe"),
    ("ibm866", "Привет", b"\x8f\xe0\xa8\xa2\xa5\xe2"),
    ("iso-8859-2", "Łódź", b"\xa3\xf3d\xbc"),
    ("iso-8859-3", "Ĉu", b"\xc6u"),
    ("iso-8859-4", "Ķēniņ", b"\xd3\xbani\xf1"),
    ("iso-8859-5", "Привет", b"\xbf\xe0\xd8\xd2\xd5\xe2"),
    ("iso-8859-6", "مرحبا", b"\xe5\xd1\xcd\xc8\xc7"),
    ("iso-8859-7", "Γειά", b"\xc3\xe5\xe9\xdc"),
    ("iso-8859-8", "שלום", b"\xf9\xec\xe5\xed"),
    ("iso-8859-8-i", "שלום", b"\xf9\xec\xe5\xed"),
    ("iso-8859-9", "ığş", b"\xfd\xf0\xfe"),
    ("iso-8859-10", "Þór", b"\xde\xf3r"),
    ("iso-8859-13", "Ačiū", b"A\xe8i\xfb"),
    ("iso-8859-14", "Ŵyn", b"\xd0yn"),
    ("iso-8859-15", "5 €", b"5 \xa4"),
    ("iso-8859-16", "Știri", b"\xaatiri"),
    ("koi8-r", "Привет", b"\xf0\xd2\xc9\xd7\xc5\xd4"),
    ("koi8-u", "Їжак", b"\xb7\xd6\xc1\xcb"),
    ("macintosh", "café", b"caf\x8e"),
    ("windows-874", "สวัสดี", b"\xca\xc7\xd1\xca\xb4\xd5"),
    ("windows-1250", "Łódź", b"\xa3\xf3d\x9f"),
    ("windows-1251", "Привет", b"\xcf\xf0\xe8\xe2\xe5\xf2"),
    ("windows-1252", "5 €", b"5 \x80"),
    ("windows-1253", "Γειά", b"\xc3\xe5\xe9\xdc"),
    ("windows-1254", "ığş", b"\xfd\xf0\xfe"),
    ("windows-1255", "שלום", b"\xf9\xec\xe5\xed"),
    ("windows-1256", "مرحبا", b"\xe3\xd1\xcd\xc8\xc7"),
    ("windows-1257", "Ačiū", b"A\xe8i\xfb"),
    ("windows-1258", "đồng", b"\xf0\xf4\xccng"),
    ("x-mac-cyrillic", "Привет", b"\x8f\xf0\xe8\xe2\xe5\xf2"),
    ("gbk", "你好", b"\xc4\xe3\xba\xc3"),
    ("gb18030", "你好㐀", b"\xc4\xe3\xba\xc3\x81\x39\xee\x39"),
    ("big5", "你好", b"\xa7\x41\xa6\x6e"),
    ("euc-jp", "日本", b"\xc6\xfc\xcb\xdc"),
    ("iso-2022-jp", "日本", b"\x1b$BF|K\\\x1b(B"),
    ("shift_jis", "日本", b"\x93\xfa\x96\x7b"),
    ("euc-kr", "안녕", b"\xbe\xc8\xb3\xe7"),
    ("utf-16le", "hé", b"h\0\xe9\0"),
];

#[test]
fn every_encoding_of_the_standard_is_known() {
    for (name, words, bytes) in STANDARD {
        // Letters and their diacritics may be separate characters.
        let decoded = decode(Some(name), bytes);
        let plain = |text: &str| text.replace("\u{f4}\u{300}", "\u{1ed3}");
        assert_eq!(plain(&decoded), words, "{name}");
        for written in [name.to_uppercase(), format!("\"{name}\""), format!(" {name} "), format!("{name}*en")]
        {
            assert_eq!(decode(Some(&written), bytes), decoded, "{written}");
        }
    }
}

#[test]
fn names_that_programs_use_are_known() {
    let of = |name: &str| STANDARD.iter().find(|(known, ..)| *known == name).unwrap();
    for (standard, names) in [
        (
            "shift_jis",
            "cp932 CP-932 ms932 x-ms-cp932 windows-31j Windows-932 x-sjis sjis Shift-JIS csShiftJIS ms_kanji",
        ),
        (
            "iso-2022-jp",
            "ISO2022JP iso-2022-jp-1 iso-2022-jp-2 iso-2022-jp-ms cp50220 cp50221 csISO2022JP JIS",
        ),
        ("euc-jp", "eucJP euc_jp x-euc-jp eucJP-ms ujis cp51932"),
        (
            "gbk",
            "gb2312 GB_2312-80 gb-2312 csGB2312 euc-cn x-euc-cn EUC-GB2312-CN cp936 windows-936 ms936 x-gbk chinese",
        ),
        ("gb18030", "GB-18030 gb_18030 gb18030-2005 cp54936"),
        ("big5", "Big-5 cp950 windows-950 x-windows-950 Big5-HKSCS cn-big5 csBig5 big5-eten"),
        (
            "euc-kr",
            "ks_c_5601-1987 KS_C_5601 ksc5601 KSC5601-1987 cp949 windows-949 x-windows-949 uhc EUCKR korean",
        ),
        ("utf-8", "utf8 UTF_8 utf-8mb4 unicode-1-1-utf-8 cp65001"),
        (
            "windows-1252",
            "cp1252 CP-1252 x-cp1252 win-1252 Windows1252 latin1 iso8859-1 ISO_8859-1 iso88591 ansi cp819 cp28591",
        ),
        ("windows-1251", "cp1251 win1251 windows1251 x-cp1251 MS-1251"),
        ("iso-8859-2", "iso8859-2 ISO_8859-2:1987 latin2 l2 csISOLatin2 cp28592"),
        ("iso-8859-15", "iso8859-15 ISO_8859-15 latin-9 cp28605"),
        ("windows-874", "tis-620 cp874 iso-8859-11 x-windows-874"),
        ("ibm866", "cp866 866 dos-866 csIBM866"),
        ("koi8-r", "koi8 koi8_r cp20866"),
        ("macintosh", "mac x-mac-roman MacRoman"),
    ] {
        let (_, words, bytes) = of(standard);
        for name in names.split(' ') {
            assert_eq!(decode(Some(name), bytes), *words, "{name}");
        }
    }
}

#[test]
fn nonstandard_charsets_are_known() {
    for (name, words, bytes) in [
        ("utf-7", "Hi 你好", b"Hi +T2BZfQ-".as_slice()),
        ("cp850", "über", b"\x81ber"),
        ("cp-850", "über", b"\x81ber"),
        ("hz-gb-2312", "a 你好 ~ b", b"a ~{Dc:C~} ~~ b"),
        ("HZ", "你\nab", b"~{Dc\nab"),
        ("iso-2022-kr", "안녕 a", b"\x1b$)C\x0e>H3g\x0f a"),
        // By the mark, else by the zeros.
        ("utf-16", "hé", b"\xfe\xff\0h\0\xe9"),
        ("utf-16", "hé", b"\xff\xfeh\0\xe9\0"),
        ("utf-16", "hé", b"\0h\0\xe9"),
        ("utf-16", "hé", b"h\0\xe9\0"),
        ("unicode", "h", b"\0h"),
    ] {
        assert_eq!(decode(Some(name), bytes), words, "{name}");
    }
}

#[test]
fn without_a_charset_it_is_utf8_else_windows_1252() {
    let nothing = [
        "us-ascii",
        "ASCII",
        "ANSI_X3.4-1968",
        "unknown-8bit",
        "x-unknown",
        "8bit",
        "none",
        "",
        &"a".repeat(70),
    ];
    for name in nothing.into_iter().map(Some).chain([None]) {
        for (bytes, words) in [
            (b"plain".as_slice(), "plain"),
            ("Größe".as_bytes(), "Größe"),
            (b"Gr\xf6\xdfe", "Größe"),
            (b"\x93quoted\x94 \x80", "“quoted” €"),
            (b"\x1b$BF|K\\\x1b(B", "日本"),
        ] {
            assert_eq!(decode(name, bytes), words, "{name:?}");
        }
    }
}

#[test]
fn invalid_utf8_is_windows_1252() {
    for (bytes, words) in [
        (b"Gr\xfc\xdfe".as_slice(), "Grüße"),
        (b"Gr\xc3\xbc\xc3\x9fe\n-- \nM\xfcller \x80", "Grüße\n-- \nMüller €"),
        (b"\xef\xbb\xbfGr\xfc", "Grü"),
        (b"\xff\xfeh\0\xe9\0", "hé"),
        (b"\xe4", "ä"),
    ] {
        assert_eq!(decode(Some("utf-8"), bytes), words);
        assert_eq!(decode(Some("UTF8"), bytes), words);
    }
}

#[test]
fn a_byte_order_mark_is_left_out() {
    for (name, bytes) in [
        (Some("utf-8"), b"\xef\xbb\xbfhi".as_slice()),
        (None, b"\xef\xbb\xbfhi"),
        (Some("us-ascii"), b"\xef\xbb\xbfhi"),
        (Some("utf-16le"), b"\xff\xfeh\0i\0"),
        (Some("gb18030"), b"\x84\x31\x95\x33hi"),
    ] {
        assert_eq!(decode(name, bytes), "hi", "{name:?}");
    }
}

#[test]
fn a_charset_of_seven_bits_has_no_bytes_of_eight() {
    for (name, bytes, expected) in [
        ("iso-2022-jp", "実はUTF-8です".as_bytes(), "実はUTF-8です"),
        ("ISO-2022-JP", b"\xc6\xfc\xcb\xdc", "日本"),
        ("iso-2022-jp", b"\x93\xfa\x96\x7b", "日本"),
        ("iso-2022-jp", b"caf\xe9", "café"),
        ("hz-gb-2312", "你好".as_bytes(), "你好"),
        ("hz-gb-2312", b"\xc4\xe3\xba\xc3", "你好"),
        ("iso-2022-kr", "안녕".as_bytes(), "안녕"),
        // With shift sequences, the charset applies.
        ("iso-2022-jp", b"\x1b$BF|K\\\x1b(B \xff", "日本 \u{fffd}"),
    ] {
        assert_eq!(decode(Some(name), bytes), expected, "{name} {bytes:?}");
    }
}
