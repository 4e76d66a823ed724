//! Policy folders, and more replicas of the service on the same database.

use std::{path::Path, sync::Arc};

use muster::core::{Core, Options, access::org_policies};
use serde_json::json;
use tempfile::TempDir;

use super::{Actor, Answer, TestApp};

/// Edits an organization's own rules.
pub const EDIT_POLICY: &str =
    "mutation($o: Id!, $input: EditPolicyInput!) { editPolicy(orgId: $o, input: $input) { version text } }";

/// A folder with the shipped policy.
pub fn policy_folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    muster::cli::write_defaults(dir.path()).unwrap();
    dir
}

impl TestApp {
    /// A service with its own policy folder.
    pub async fn with_policy_folder() -> (Self, TempDir) {
        let dir = policy_folder();
        (Self::start_with(|config| config.policy_dir = Some(dir.path().to_owned())).await, dir)
    }

    /// Another replica on the same database, with this policy folder or none.
    pub async fn replica(&self, dir: Option<&Path>) -> Arc<Core> {
        let mut config = self.core.config.clone();
        config.policy_dir = dir.map(Path::to_owned);
        let options = Options { clock: self.clock.clone(), ..Options::default() };
        let replica = muster::service::open(config, options).await.unwrap();
        org_policies::follow(&replica).await.unwrap();
        replica
    }
}

impl Actor {
    /// Replaces the text of an organization's own rules, based on a version.
    pub async fn edit_policy(&self, org: i64, version: &str, text: &str) -> Answer {
        let input = json!({ "version": version, "text": text, "reason": "because" });
        self.gql(EDIT_POLICY, json!({ "o": org, "input": input })).await
    }

    /// Edits one line of an organization's own rules: `allowPermission`, `denyPermission` or `resetPermission`.
    pub async fn set_permission(&self, org: i64, edit: &str, role: &str, permission: &str) -> Answer {
        let mutation = format!(
            "mutation($o: Id!) {{ {edit}(orgId: $o, input: {{ role: {role}, permission: \"{permission}\", \
             reason: \"so\" }}) {{ version text }} }}"
        );
        self.gql(&mutation, json!({ "o": org })).await
    }
}
