//! The cost of a permission check against the compiled table, as requests make it, and of reading a large policy: 10,000
//! lines, 1,000 organizations with a file each.

use std::{fmt::Write, fs, hint::black_box, path::Path, time::Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use muster::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
    },
    core::policy::Policy,
};

fn check(criterion: &mut Criterion) {
    let Ok(policy) = Policy::embedded() else { return };
    criterion.bench_function("permission check", |bench| {
        bench.iter(|| {
            let permissions = policy.role_permissions(black_box(OrgId(7)), black_box(Role::Operator));
            black_box(permissions.contains(black_box(Permission::AgentEdit)))
        });
    });
}

const ORGANIZATIONS: i64 = 1_000;
/// What each organization grants its VIEWERs or denies them: ten lines, different for each organization.
const GIVEN: [&str; 10] = [
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

fn lines(org: i64, turned: bool) -> String {
    let mut text = String::new();
    for (n, permission) in GIVEN.into_iter().enumerate() {
        let effect = if ((org >> n) & 1 == 1) ^ turned { "allow" } else { "deny" };
        let _ = writeln!(text, "p, VIEWER, {org}, {permission}, {effect}");
    }
    text
}

fn write_large(dir: &Path) -> std::io::Result<()> {
    muster::cli::write_defaults(dir)?;
    (1..=ORGANIZATIONS).try_for_each(|org| fs::write(dir.join(format!("orgs/{org}.csv")), lines(org, false)))
}

/// Resident memory in KiB, as reported by Linux.
fn resident() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default().to_owned();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn large(criterion: &mut Criterion) {
    let Ok(dir) = tempfile::tempdir() else { return };
    if write_large(dir.path()).is_err() {
        return;
    }
    let (before, began) = (resident(), Instant::now());
    let Ok(policy) = Policy::load(dir.path()) else { return };
    println!("10,000 lines, 1,000 organizations: read in {:?}, {} KiB", began.elapsed(), resident() - before);
    criterion.bench_function("permission check, 1,000 organizations", |bench| {
        bench.iter(|| {
            let permissions = policy.role_permissions(black_box(OrgId(777)), black_box(Role::Viewer));
            black_box(permissions.contains(black_box(Permission::ContactView)))
        });
    });
    let mut group = criterion.benchmark_group("a policy of 10,000 lines and 1,000 organizations");
    group.sample_size(10);
    group.bench_function("read from nothing", |bench| bench.iter(|| Policy::load(dir.path())));
    let mut turned = [true, false].into_iter().cycle();
    group.bench_function("read again after an edit of one file", |bench| {
        bench.iter(|| {
            let text = lines(7, turned.next().unwrap_or(true));
            let _ = fs::write(dir.path().join("orgs/7.csv"), text);
            policy.reload()
        });
    });
    group.finish();
}

// The large one first: later it would reuse memory that others have freed.
criterion_group!(benches, large, check);
criterion_main!(benches);
