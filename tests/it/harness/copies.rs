//! An installation that is made by commands once per build of the tests, and of which others are copies.
//!
//! Each command opens a whole installation, which takes a debug build long: a dozen of them cost more than what most
//! tests then do.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{Program, Tenant, database};

/// Makes `program`, whose SQLite database is in `folder`, a copy of the one that has an organization and what `fill`
/// adds. Each `fill` has a `name`.
pub async fn copied(program: &Program, folder: &Path, name: &str, fill: fn(&Program, &Tenant)) -> Tenant {
    let model = model(name, fill).await;
    copy(&model.join("data"), Path::new(program.variable("MUSTER_DATA_DIR")));
    copy(&model.join("database"), folder);
    let tenant: Value = serde_json::from_slice(&fs::read(model.join("tenant.json")).unwrap()).unwrap();
    Tenant { org: tenant["org"].as_i64().unwrap(), token: tenant["token"].as_str().unwrap().to_owned() }
}

/// The folder of the one that is copied.
async fn model(name: &str, fill: fn(&Program, &Tenant)) -> PathBuf {
    let models = Path::new(env!("CARGO_TARGET_TMPDIR")).join("models").join(name);
    fs::create_dir_all(&models).unwrap();
    let model = models.join(database::build());
    if model.exists() {
        return model;
    }
    let lock = File::create(models.join("lock")).unwrap();
    lock.lock().unwrap();
    if !model.exists() {
        for old in fs::read_dir(&models).unwrap().map(|entry| entry.unwrap().path()) {
            let _ = fs::remove_dir_all(old);
        }
        let making = models.join("making");
        make(&making, fill).await;
        fs::rename(making, &model).unwrap();
    }
    model
}

async fn make(making: &Path, fill: fn(&Program, &Tenant)) {
    let (data, folder) = (making.join("data"), making.join("database"));
    fs::create_dir_all(&data).unwrap();
    fs::create_dir(&folder).unwrap();
    let url = database::empty(&folder).await;
    let program = Program::new(&[("MUSTER_DATABASE_URL", url.as_str())]);
    let tenant = program.tenant();
    fill(&program, &tenant);
    // Copies the keys too. No command is running, so the copied database is consistent.
    copy(Path::new(program.variable("MUSTER_DATA_DIR")), &data);
    let tenant = json!({ "org": tenant.org, "token": tenant.token });
    fs::write(making.join("tenant.json"), tenant.to_string()).unwrap();
}

/// Copies what is in a folder into another one that exists.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
