//! The law of time zones: what the service takes as one, browsers know.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Stdio},
};

use muster::base::zones::is_zone;

/// Writes those of the names on standard input that `Intl` refuses.
const REFUSED: &str = "const names = require('fs').readFileSync(0, 'utf8').split('\\n');
    const known = (timeZone) => { try { return new Intl.DateTimeFormat('en', { timeZone }) } catch { return false } };
    console.log(names.filter((name) => !known(name)).join('\\n'))";

fn refused_by_browsers(names: &BTreeSet<String>) -> BTreeSet<String> {
    let mut node = Command::new("node");
    node.args(["-e", REFUSED]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().expect("node is installed");
    let list: Vec<&str> = names.iter().map(String::as_str).collect();
    node.stdin.take().unwrap().write_all(list.join("\n").as_bytes()).unwrap();
    let said = String::from_utf8(node.wait_with_output().unwrap().stdout).unwrap();
    said.lines().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Whether a name is a place in the world, which a browser that is older than the database may not know yet.
fn is_place(name: &str) -> bool {
    let regions = [
        "Africa/",
        "America/",
        "Antarctica/",
        "Asia/",
        "Atlantic/",
        "Australia/",
        "Europe/",
        "Indian/",
        "Pacific/",
    ];
    regions.iter().any(|region| name.starts_with(region))
}

#[test]
fn a_time_zone_is_one_that_browsers_know() {
    let names: BTreeSet<String> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    assert!(names.len() > 400, "the time zone database is installed");
    let refused = refused_by_browsers(&names);
    assert!(refused.len() < names.len() / 2 + 10, "node shows times");
    let wrong: Vec<&String> =
        names.iter().filter(|name| !is_place(name) && is_zone(name) == refused.contains(*name)).collect();
    assert!(wrong.is_empty(), "taken, but unknown to browsers, or the other way round: {wrong:?}");
    let lost: Vec<&String> = names.iter().filter(|name| is_place(name) && !is_zone(name)).collect();
    assert!(lost.is_empty(), "places that are no zones: {lost:?}");
}
