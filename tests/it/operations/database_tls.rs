//! PostgreSQL over the network: the service uses TLS and verifies the server.

use muster::core::store::Db;

use crate::harness::{Postgres, config};

/// Whether the connection is encrypted, according to the server.
async fn is_encrypted(url: &str) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(&config(folder.path(), url).database).await?;
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let row = db.one(sql.to_owned(), vec![]).await?.expect("there is a connection");
    Ok(row.try_get_by(0)?)
}

#[tokio::test]
async fn once_the_database_proves_its_identity_over_tls() {
    let (postgres, other) = (Postgres::start_with_tls(), Postgres::start_with_tls());
    let root = |of: &Postgres| format!("sslrootcert={}", of.certificate().display());
    let verified = format!("sslmode=verify-full&{}", root(&postgres));
    assert!(is_encrypted(&postgres.url_of("localhost", &verified)).await.unwrap());
    assert!(is_encrypted(&postgres.url_of("localhost", "sslmode=require")).await.unwrap());
    assert!(!is_encrypted(&postgres.url_of("localhost", "sslmode=disable")).await.unwrap());
    for (host, parameters, why) in [
        ("localhost", format!("sslmode=verify-full&{}", root(&other)), "another authority's certificate"),
        ("127.0.0.1", verified, "a certificate of another name"),
        ("localhost", "sslmode=verify-full".to_owned(), "a certificate without a known authority"),
    ] {
        let refused = is_encrypted(&postgres.url_of(host, &parameters)).await.expect_err(why);
        assert!(format!("{refused:#}").contains("certificate"), "{why}: {refused:#}");
    }
}
