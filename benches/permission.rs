//! What a permission check costs: the table that casbin was compiled into, as a request asks it.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use muster::{
    access::{Permission, Role, policy::Policy},
    ids::OrgId,
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

criterion_group!(benches, check);
criterion_main!(benches);
