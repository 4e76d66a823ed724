//! Accounts at other providers: their owner sees and unlinks them, and keeps a way to sign in.

use serde_json::{Value, json};

use crate::people::oidc::{EMAIL, EXCHANGE, Setup};

const LINKED: &str = "{ linkedAccounts { id provider label isUsable email createdAt lastUsedAt } }";
const UNLINK: &str = "mutation($id: Id!) { unlinkAccount(id: $id) }";

#[tokio::test]
async fn only_the_owner_sees_and_unlinks_linked_accounts() {
    let setup = Setup::open(true, false).await;
    let id = setup.user(true).await;
    let ann = setup.signed_in("ann").await;
    setup.app.mails().await;
    let listed = ann.gql(LINKED, json!({})).await.data()["linkedAccounts"].clone();
    let account = json!({
        "id": listed[0]["id"], "provider": "peer", "label": "The peer", "isUsable": true, "email": EMAIL,
        "createdAt": "2026-06-01T12:00:00.000Z", "lastUsedAt": "2026-06-01T12:00:00.000Z",
    });
    assert_eq!(listed, json!([account]));
    let unlink = json!({ "id": listed[0]["id"] });
    // Others don't see them and can't unlink them.
    for other in [&setup.app.stranger, &setup.app.owner] {
        assert_eq!(other.gql(LINKED, json!({})).await.data()["linkedAccounts"], json!([]));
        assert_eq!(other.gql(UNLINK, unlink.clone()).await.code(), "NOT_FOUND");
    }
    let token = setup.app.token(&["member.edit"]).await;
    for (actor, code) in [(&token, "PERMISSION_DENIED"), (&setup.app.anonymous, "UNAUTHENTICATED")] {
        assert_eq!(actor.gql(LINKED, json!({})).await.code(), code);
        assert_eq!(actor.gql(UNLINK, unlink.clone()).await.code(), code);
    }
    // A sign-in in progress ends with it. The current session stays.
    let under_way = setup.visit("ann").await;
    assert_eq!(ann.gql(UNLINK, unlink.clone()).await.data()["unlinkAccount"], unlink["id"]);
    let late = setup.app.anonymous.gql(EXCHANGE, json!({ "c": under_way["code"] })).await;
    assert_eq!(late.code(), "LINK_INVALID");
    assert_eq!(ann.gql(LINKED, json!({})).await.data()["linkedAccounts"], json!([]));
    assert_eq!(ann.gql(UNLINK, unlink).await.code(), "NOT_FOUND");
    assert_eq!(setup.app.mail().await.subject, "A way to sign in was removed");
    let sql =
        "SELECT CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'unlinkAccount' AND actor_id = $1";
    let changes: String = setup.app.one(sql, vec![id.into()]).await;
    let changes: Value = serde_json::from_str(&changes).unwrap();
    assert_eq!(changes, json!({ "provider": "peer", "email": "changed" }));
    // The provider still vouches for the address: the next sign-in links it again, and the person is notified.
    setup.signed_in("ann").await;
    assert_eq!(setup.app.mail().await.subject, "Another way to sign in");
}

#[tokio::test]
async fn the_last_way_to_sign_in_stays() {
    let setup = Setup::open(true, false).await;
    let id = setup.user(true).await;
    let ann = setup.signed_in("ann").await;
    setup.app.execute("UPDATE users SET password_hash = NULL WHERE id = $1", vec![id.into()]).await;
    let link = async |provider: &str| -> i64 {
        let sql = "INSERT INTO user_identities (user_id, provider, subject, email, created_at, last_used_at) \
                   VALUES ($1, $2, 'someone', $3, 1, 1) RETURNING id";
        setup.app.one(sql, vec![id.into(), provider.into(), EMAIL.into()]).await
    };
    let listed = ann.gql(LINKED, json!({})).await.data()["linkedAccounts"].clone();
    let first = json!({ "id": listed[0]["id"] });
    // A provider that the installation no longer has lets no one in.
    let forgotten = link("forgotten").await;
    let refused = ann.gql(UNLINK, first.clone()).await;
    assert_eq!(refused.code(), "CONFLICT");
    assert!(refused.text.contains("requestPasswordReset"));
    let listed = ann.gql(LINKED, json!({})).await.data()["linkedAccounts"].clone();
    assert_eq!((&listed[1]["label"], &listed[1]["isUsable"]), (&json!("forgotten"), &json!(false)));
    assert_eq!(ann.gql(UNLINK, json!({ "id": forgotten })).await.data()["unlinkAccount"], forgotten);
    // If two are unlinked at once, one stays.
    let second = json!({ "id": link("dead").await });
    let (one, two) = tokio::join!(ann.gql(UNLINK, first), ann.gql(UNLINK, second));
    let codes = [&one, &two].map(|answer| answer.body["errors"][0]["extensions"]["code"].clone());
    assert!(codes.contains(&Value::Null) && codes.contains(&json!("CONFLICT")), "{codes:?}");
    assert_eq!(setup.app.stranger.gql(LINKED, json!({})).await.data()["linkedAccounts"], json!([]));
}
