//! The OpenAPI description of the two routes that carry files instead of JSON (`src/api/files/attachments.rs`): they
//! have no stored document.

use serde_json::{Value, json};

use super::openapi::description;
use crate::{base::ids::MAX_ID, resolvers::Catalogue};

/// The tag of both.
pub const TAG: &str = "attachment";

/// The path, the method and the description of each route.
pub fn file_paths(catalogue: &Catalogue) -> [(&'static str, &'static str, Value); 2] {
    let org = path_parameter("org_id", "The organization.");
    let filename = json!({
        "name": "filename",
        "in": "query",
        "required": true,
        "description": "The file's name.",
        "schema": { "type": "string", "maxLength": 255 },
    });
    let upload = json!({
        "operationId": "uploadAttachment",
        "tags": [TAG],
        "parameters": [org, filename],
        "requestBody": { "required": true, "content": bytes("The file, of any media type.") },
        "responses": {
            "201": {
                "description": "The file's record, whose id a message names in `attachment_ids`.",
                "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Attachment" } } },
            },
            "default": problem(),
        },
    });
    let download = json!({
        "operationId": "downloadAttachment",
        "tags": [TAG],
        "parameters": [org, path_parameter("id", "Identifies the attachment.")],
        "responses": {
            "200": { "description": "The file.", "content": bytes("The file, with its own media type.") },
            "default": problem(),
        },
    });
    [
        (
            "/v1/org/{org_id}/attachment",
            "post",
            with_permission(catalogue, "uploadAttachment", "Uploads a file.", upload),
        ),
        (
            "/v1/org/{org_id}/attachment/{id}",
            "get",
            with_permission(catalogue, "attachment", "Downloads a file.", download),
        ),
    ]
}

/// The operation, with what it does and the permission that it shares with a root field.
fn with_permission(catalogue: &Catalogue, root: &str, summary: &str, mut operation: Value) -> Value {
    operation["summary"] = json!(summary);
    if let Some(root) = catalogue.root_field(root) {
        operation["description"] = json!(description(summary, root.permit));
    }
    operation
}

fn path_parameter(name: &str, about: &str) -> Value {
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": about,
        "schema": { "type": "integer", "minimum": 1, "maximum": MAX_ID },
    })
}

fn bytes(about: &str) -> Value {
    let schema = json!({ "type": "string", "format": "binary", "description": about });
    json!({ "application/octet-stream": { "schema": schema } })
}

fn problem() -> Value {
    json!({
        "description": "A refusal.",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    })
}
