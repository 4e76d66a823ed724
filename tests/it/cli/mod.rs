//! The command line, with the real program.

mod audit;
mod backup;
mod built_in;
mod config;
mod files;
mod installation;
mod keys;
mod operator;
mod people;
mod policies;
mod program;
mod remote;
mod restored;
mod seed;
mod tokens;
mod users;

use serde_json::json;

use crate::harness::TestApp;

/// A credential with a sealed value.
async fn store_secret(app: &TestApp) {
    let secret = json!([{ "label": "key", "type": "secret", "value": "s-1" }]);
    let credential = json!({ "name": "c", "kind": "api-key", "fields": secret });
    app.owner.post(&format!("/v1/org/{}/credential", app.org), credential).await.expect(201);
}
