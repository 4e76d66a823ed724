//! Pictures: who sets them, who sees them, and that nothing but pictures is ever served.

use serde_json::{Value, json};

use crate::harness::{PNG, TestApp, picture};

const SET: &str = "mutation($o: Id!, $id: Id!, $input: AvatarInput!) { setAgentAvatar(orgId: $o, id: $id, input: $input) { avatarUrl } }";

#[tokio::test]
async fn anyone_who_knows_a_pictures_address_can_see_it() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let vars = |input: Value| json!({ "o": app.org, "id": agent, "input": input });
    let set = app.operator.gql(SET, vars(picture(PNG))).await.data();
    let url = set["setAgentAvatar"]["avatarUrl"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&format!("/avatars/agent/{agent}?v=")), "{url}");
    let shown = app.anonymous.get(&url).await;
    assert_eq!((shown.status, shown.header("content-type")), (200, "image/png"));
    assert_eq!(shown.header("x-content-type-options"), "nosniff");
    let path = url.split('?').next().unwrap();
    for wrong in
        [format!("{path}?v=1"), path.to_owned(), url.replace("/agent/", "/user/"), format!("{path}?v=x")]
    {
        assert_eq!(app.owner.get(&wrong).await.problem(), (404, "NOT_FOUND"), "{wrong}");
    }
    let gone = app.operator.gql(SET, vars(json!({ "contentBase64": null }))).await.data();
    assert_eq!(gone["setAgentAvatar"]["avatarUrl"], Value::Null);
    assert_eq!(app.anonymous.get(&url).await.problem(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn only_pictures_are_accepted() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let vars = |input: Value| json!({ "o": app.org, "id": agent, "input": input });
    let svg = app.owner.gql(SET, vars(picture(b"<svg xmlns='http://www.w3.org/2000/svg'/>"))).await;
    assert_eq!(svg.code(), "UNSUPPORTED_MEDIA_TYPE");
    let wide = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x4e\x20\0\0\x4e\x20\x08\x02\0\0\0twenty thousand by twenty thousand";
    let wide = app.owner.gql(SET, vars(picture(wide))).await;
    assert_eq!(wide.wrong_inputs(), [("/input/contentBase64", "TOO_LARGE")]);
    assert_eq!(app.owner.gql(SET, vars(json!({ "contentBase64": "%" }))).await.code(), "VALIDATION_FAILED");
}

#[tokio::test]
async fn organizations_and_people_have_pictures_of_their_own() {
    let app = TestApp::start().await;
    let set = "mutation($o: Id!, $input: AvatarInput!) {
        setOrganizationAvatar(orgId: $o, input: $input) { avatarUrl }
        setViewerAvatar(input: $input) { avatarUrl }
    }";
    let data = app.owner.gql(set, json!({ "o": app.org, "input": picture(PNG) })).await.data();
    for (field, kind) in [("setOrganizationAvatar", "organization"), ("setViewerAvatar", "user")] {
        let url = data[field]["avatarUrl"].as_str().unwrap();
        assert!(url.starts_with(&format!("/avatars/{kind}/")), "{url}");
        assert_eq!(app.anonymous.get(url).await.status, 200);
    }
}
