//! Names are found and ordered by their folded form, the same on both databases; and the law that every write keeps it.

use muster::base::folding;
use serde_json::{Value, json};

use crate::harness::{TestApp, is_postgres};

/// Names that the orders of databases and languages disagree about, in the order that lists have.
const ORDERED: [&str; 8] = ["_x", "Äpfel", "apple", "émile", "Ørsted", "zebra", "Zoe", "Zürich"];
/// The same names, in the order of their creation.
const MADE: [&str; 8] = ["émile", "Zoe", "apple", "Äpfel", "_x", "Zürich", "zebra", "Ørsted"];

/// The law: each column `…_folded` of the database says what its column says, folded.
pub async fn is_kept(app: &TestApp, after: &str) {
    let columns = if is_postgres() {
        "SELECT table_name || '.' || column_name FROM information_schema.columns \
         WHERE table_schema = 'public' AND column_name LIKE '%\\_folded'"
    } else {
        "SELECT m.name || '.' || c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c \
         WHERE m.type = 'table' AND c.name LIKE '%\\_folded' ESCAPE '\\'"
    };
    let columns = app.column::<String>(columns).await;
    assert!(columns.len() >= 7, "{columns:?}");
    for place in columns {
        let (table, folded) = place.split_once('.').unwrap();
        let column = folded.strip_suffix("_folded").unwrap();
        let fold = if column == "email" { folding::address } else { folding::name };
        let both = format!(
            "SELECT COALESCE({column}, '-') || ' is ' || COALESCE({folded}, '-') FROM {table} ORDER BY {table}.id"
        );
        let plain = format!("SELECT COALESCE({column}, '-') FROM {table} ORDER BY {table}.id");
        let plain = app.column::<String>(&plain).await;
        for (kept, plain) in app.column::<String>(&both).await.iter().zip(plain) {
            assert_eq!(*kept, format!("{plain} is {}", fold(&plain)), "{place} after {after}");
        }
    }
}

#[tokio::test]
async fn postgres_orders_folded_columns_by_their_bytes() {
    let app = TestApp::start().await;
    let other = "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public' \
                 AND (column_name LIKE '%\\_folded' OR (table_name, column_name) = ('conversations', 'model')) \
                 AND collation_name IS DISTINCT FROM 'C'";
    assert_eq!(app.column::<String>(other).await, [""; 0]);
}

/// The texts at `pointer` of the organization's conversations.
async fn listed(app: &TestApp, query: &str, pointer: &str) -> Vec<String> {
    let page = app.admin.get(&format!("/v1/org/{}/conversation?{query}", app.org)).await.expect(200);
    let texts = page["data"].as_array().unwrap().iter();
    texts.map(|conversation| conversation.pointer(pointer).unwrap().as_str().unwrap().to_owned()).collect()
}

/// A conversation of an agent, a contact, a channel and a model of this name.
async fn named(app: &TestApp, name: &str) {
    let agent = app.agent().await;
    let rename = "mutation($o: Id!, $a: Id!, $n: String!) { updateAgent(orgId: $o, id: $a, input: {name: $n}) { id } }";
    app.admin.gql(rename, json!({ "o": app.org, "a": agent, "n": name })).await.data();
    let path = format!("/v1/org/{}/channel", app.org);
    let webhook = json!({ "outbound_url": "https://hook.example/in" });
    let channel = json!({ "agent_id": agent, "transport": "WEBHOOK", "name": name, "webhook": webhook });
    let channel = app.admin.post(&path, channel).await.expect(201);
    let conversation = app.conversation(agent).await;
    let contact = app.contact(name).await;
    let sql = "UPDATE conversations SET contact_id = $2, channel_id = $3, model = $4 WHERE id = $1";
    let values =
        vec![conversation.into(), contact.into(), channel["id"].as_i64().unwrap().into(), name.into()];
    app.execute(sql, values).await;
}

#[tokio::test]
async fn names_have_one_order_on_both_databases() {
    let app = TestApp::start().await;
    for name in MADE {
        named(&app, name).await;
    }
    is_kept(&app, "making and renaming").await;
    for (sort, pointer) in
        [("contact", "/contact_name"), ("channel", "/channel_name"), ("agent", "/agent/name")]
    {
        assert_eq!(listed(&app, &format!("sort={sort}&order=asc"), pointer).await, ORDERED, "{sort}");
        let mut down = listed(&app, &format!("sort={sort}&order=desc"), pointer).await;
        down.reverse();
        assert_eq!(down, ORDERED, "{sort}");
    }
    // A model is an identifier and no name.
    let mut models = MADE;
    models.sort_unstable();
    assert_eq!(listed(&app, "sort=model&order=asc", "/model").await, models);
    let query = "query($o: Id!) { contacts(orgId: $o, page: 1, limit: 10) { data { name } } }";
    let contacts = app.operator.gql(query, json!({ "o": app.org })).await.data()["contacts"]["data"].clone();
    assert_eq!(contacts, Value::from_iter(ORDERED.map(|name| json!({ "name": name }))));
}

#[tokio::test]
async fn a_name_is_found_in_any_case_and_without_its_accents() {
    let app = TestApp::start().await;
    for name in ["Жан-Жак Руссо", "Jean-Éloïse", "МакДональд"] {
        named(&app, name).await;
    }
    for (search, name) in [
        ("жан-жак", "Жан-Жак Руссо"),
        ("РУССО жак", "Жан-Жак Руссо"),
        ("jean-éloïse", "Jean-Éloïse"),
        ("JEAN-ELOISE", "Jean-Éloïse"),
        ("макдональд", "МакДональд"),
        ("кдон", "МакДональд"),
    ] {
        assert_eq!(listed(&app, &format!("search={search}"), "/contact_name").await, [name], "{search}");
    }
    assert_eq!(listed(&app, "search=жан_жак", "/contact_name").await, [""; 0]);
}

#[tokio::test]
async fn an_address_is_one_account_in_any_case() {
    let app = TestApp::start().await;
    let create = async |email: &'static str| {
        let create = ["user", "create", "--email", email, "--name", "Élise", "--password-stdin"];
        app.cli_with_input(&create, "correct horse\n").await
    };
    let made = create("élise@example.com").await.expect();
    create("Élise@example.com").await.refused(1, "NAME_TAKEN");
    for email in ["élise@example.com", "ÉLISE@EXAMPLE.COM"] {
        let session = app.sign_in(email, "correct horse").await.data();
        assert_eq!(session["signIn"]["user"]["id"], made["id"], "{email}");
    }
    // Without the accent it is someone else's.
    assert_ne!(create("elise@example.com").await.expect()["id"], made["id"]);
    is_kept(&app, "making accounts").await;
}
