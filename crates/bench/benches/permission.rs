//! The cost of a request's permission check against the compiled table, and of reading a large policy: 10,000 lines,
//! with a file for each of 1,000 organizations.

use std::{fmt::Write, fs, hint::black_box, path::Path, time::Instant};

use divan::Bencher;
use muster::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
    },
    core::policy::Policy,
};
use tempfile::TempDir;

fn main() {
    // Before the benchmarks: afterwards it would reuse freed memory.
    if let Some(dir) = large_folder() {
        let (before, began) = (resident(), Instant::now());
        let policy = Policy::load(dir.path());
        let (took, after) = (began.elapsed(), resident());
        drop(black_box(policy));
        println!("10,000 lines, 1,000 organizations: read in {took:?}, {} KiB", after - before);
    }
    divan::main();
}

#[divan::bench]
fn check(bencher: Bencher<'_, '_>) {
    let Ok(policy) = Policy::embedded() else { return };
    bencher.bench(|| {
        let permissions = policy.role_permissions(black_box(OrgId(7)), black_box(Role::Operator));
        permissions.contains(black_box(Permission::AgentEdit))
    });
}

#[divan::bench]
fn check_among_1000_organizations(bencher: Bencher<'_, '_>) {
    let Some((_dir, policy)) = large() else { return };
    bencher.bench(|| {
        let permissions = policy.role_permissions(black_box(OrgId(777)), black_box(Role::Viewer));
        permissions.contains(black_box(Permission::ContactView))
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn read_10000_lines(bencher: Bencher<'_, '_>) {
    let Some(dir) = large_folder() else { return };
    bencher.bench(|| Policy::load(dir.path()));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn reload_after_an_edit_of_one_file(bencher: Bencher<'_, '_>) {
    let Some((dir, policy)) = large() else { return };
    let mut inverted = [true, false].into_iter().cycle();
    bencher.bench_local(|| {
        let text = lines(7, inverted.next().unwrap_or(true));
        let _ = fs::write(dir.path().join("orgs/7.csv"), text);
        policy.reload()
    });
}

/// Permissions granted or denied to VIEWERs: ten lines, different for each organization.
const VIEWER_PERMISSIONS: [&str; 10] = [
    "contact.view",
    "contact.edit",
    "skill.create",
    "skill.edit",
    "mcp.create",
    "mcp.edit",
    "credential.edit",
    "conversation.edit",
    "agent.interact",
    "approval.resolve",
];

fn lines(org: i64, inverted: bool) -> String {
    let mut text = String::new();
    for (n, permission) in VIEWER_PERMISSIONS.into_iter().enumerate() {
        let effect = if ((org >> n) & 1 == 1) ^ inverted { "allow" } else { "deny" };
        let _ = writeln!(text, "p, VIEWER, {org}, {permission}, {effect}");
    }
    text
}

fn write_large(dir: &Path) -> std::io::Result<()> {
    muster::cli::write_defaults(dir)?;
    (1..=1_000).try_for_each(|org| fs::write(dir.join(format!("orgs/{org}.csv")), lines(org, false)))
}

/// Resident memory in KiB, as reported by Linux.
fn resident() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default().to_owned();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// The large policy and its folder.
fn large() -> Option<(TempDir, Policy)> {
    let dir = large_folder()?;
    let policy = Policy::load(dir.path()).ok()?;
    Some((dir, policy))
}

fn large_folder() -> Option<TempDir> {
    let dir = tempfile::tempdir().ok()?;
    write_large(dir.path()).ok()?;
    Some(dir)
}
