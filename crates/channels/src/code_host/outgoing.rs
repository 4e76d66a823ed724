//! Comments, and finding those that were sent: each carries its delivery's id, which is not shown. Reactions and reviews.

use std::time::Duration;

use http::Method;
use jiff::{Timestamp, ToSpan};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    api::Api,
    host::{Target, is_path},
    text::{MARKER, neutralize},
};
use crate::{
    bounds,
    contract::{Action, ActionCall, Cause, Failure, Part, Receipt, Scope, Software},
    reaction::Reaction,
};

pub const REVIEW: Action = Action {
    name: "review",
    title: "Review",
    description: "Reviews the pull request of this conversation, with comments on lines of its changes.",
    schema: r#"{
        "type": "object", "additionalProperties": false, "required": ["comments"],
        "properties": {
            "summary": { "type": "string", "description": "What you think of the whole, in Markdown." },
            "request_changes": {
                "type": "boolean", "default": false,
                "description": "Whether it must not be merged as it is. GitLab shows this in the summary only."
            },
            "comments": {
                "type": "array", "maxItems": 100,
                "items": {
                    "type": "object", "additionalProperties": false, "required": ["path", "line", "text"],
                    "properties": {
                        "path": { "type": "string", "description": "The file, from the root of the repository." },
                        "line": { "type": "integer", "minimum": 1, "description": "The line after the change." },
                        "text": { "type": "string", "description": "Your comment, in Markdown." }
                    }
                }
            }
        }
    }"#,
    check: Review::check,
    risk: 30,
    is_idempotent: false,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Review {
    #[serde(default)]
    summary: String,
    #[serde(default)]
    request_changes: bool,
    comments: Vec<LineComment>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineComment {
    path: String,
    line: u64,
    text: String,
}

impl Review {
    fn check(arguments: &Value) -> Result<(), Cause> {
        Self::read(arguments).map(drop)
    }

    fn read(arguments: &Value) -> Result<Self, Cause> {
        let read = Self::deserialize(arguments);
        let review = read.map_err(|error| Cause::from(format!("The arguments are not valid: {error}.")))?;
        if review.comments.len() > bounds::LIST {
            return Err("A review has at most 100 comments.".into());
        }
        if review.comments.is_empty() && review.summary.trim().is_empty() {
            return Err("A review needs a summary or comments.".into());
        }
        Ok(review)
    }

    /// GitHub requires words for a request.
    fn summary(&self) -> String {
        let is_bare = self.request_changes && self.summary.trim().is_empty();
        neutralize(if is_bare { "Changes are needed." } else { &self.summary })
    }
}

/// Sends a comment.
pub async fn send(api: &Api, part: &Part<'_>) -> Result<Receipt, Failure> {
    let place = place(part.target)?;
    if !part.files.is_empty() {
        let why = format!("{} takes no files. Put them into the repository.", api.host.name);
        return Err(Failure::Refused(why.into()));
    }
    let body = format!("{}\n\n{}", neutralize(&part.text.text), marker(part.id));
    if place.mark == '~' {
        return discuss(api, &place, &body).await;
    }
    let sent = api.post(&place.comments(api.host), &json!({ "body": body })).await?;
    Ok(receipt(api, &place, &sent))
}

/// Looks for a sent comment.
pub async fn find_sent(api: &Api, part: &Part<'_>) -> Result<Option<Receipt>, Failure> {
    let place = place(part.target)?;
    if place.mark == '~' {
        return Ok(None);
    }
    // Our clock may be wrong.
    let since = part.written_at.checked_sub(10.minutes()).unwrap_or(Timestamp::UNIX_EPOCH);
    let path = format!("{}?{}{}", place.all_comments(api.host), api.host.since, since.strftime("%FT%TZ"));
    let found = api.get(&path).await?;
    let marker = marker(part.id);
    let is_it = |comment: &&Value| comment["body"].as_str().is_some_and(|body| body.contains(&marker));
    let comment = found.as_array().into_iter().flatten().find(is_it);
    Ok(comment.map(|comment| receipt(api, &place, comment)))
}

/// Puts an emoji on an issue or a comment, which has each of ours once.
pub async fn react(api: &Api, call: &ActionCall<'_>) -> Result<Receipt, Failure> {
    let reaction = Reaction::read(call.arguments).map_err(Failure::Refused)?;
    let message = reaction.message(call)?;
    if !is_path(message) {
        return Err(Failure::Refused("This message can't have reactions.".into()));
    }
    let emoji = api.host.emoji(&reaction.emoji).ok_or_else(|| {
        let why = format!("{} has only these reactions: 👍 👎 😄 🎉 😕 ❤ 🚀 👀.", api.host.name);
        Failure::Refused(why.into())
    })?;
    let [reactions, field] = api.host.reactions;
    let path = format!("{}/{message}/{reactions}", api.host.root);
    match api.post(&path, &json!({ field: emoji })).await {
        // GitLab refuses one that is there.
        Err(Failure::TargetGone(cause)) if cause.as_str().contains("has already been taken") => {
            Ok(Receipt::default())
        }
        set => set.map(|_| Receipt::default()),
    }
}

/// Reviews a pull request, all comments at once.
pub async fn review(api: &Api, call: &ActionCall<'_>) -> Result<Receipt, Failure> {
    let review = Review::read(call.arguments).map_err(Failure::Refused)?;
    let place = place(call.target)?;
    if api.host.software == Software::Gitlab {
        return review_at_gitlab(api, &place, &review).await;
    }
    let line = if api.host.software == Software::Gitea { "new_position" } else { "line" };
    let comments = review.comments.iter();
    let comments =
        comments.map(|one| json!({"path": one.path, line: one.line, "body": neutralize(&one.text)}));
    let event = if review.request_changes { "REQUEST_CHANGES" } else { "COMMENT" };
    let body = json!({ "event": event, "body": review.summary(), "comments": comments.collect::<Vec<_>>() });
    let path = format!("{}/pulls/{}/reviews", api.host.repository(place.repo), place.number);
    api.post(&path, &body).await.map_err(no_pull_request).map(|_| Receipt::default())
}

/// Drafts become visible together.
async fn review_at_gitlab(api: &Api, place: &Target<'_>, review: &Review) -> Result<Receipt, Failure> {
    let request = format!("{}/merge_requests/{}", api.host.repository(place.repo), place.number);
    let found = api.get(&request).await.map_err(no_pull_request)?;
    let refs = &found["diff_refs"];
    let drafts = format!("{request}/draft_notes");
    let to_note = |LineComment { path, line, text }: &LineComment| {
        let position = json!({
            "position_type": "text", "new_path": path, "old_path": path, "new_line": line,
            "base_sha": refs["base_sha"], "start_sha": refs["start_sha"], "head_sha": refs["head_sha"],
        });
        json!({ "note": neutralize(text), "position": position })
    };
    let mut notes: Vec<Value> = review.comments.iter().map(to_note).collect();
    let summary = review.summary();
    if !summary.trim().is_empty() {
        notes.push(json!({ "note": summary }));
    }
    let mut written = Vec::new();
    for note in &notes {
        match api.post(&drafts, note).await {
            Ok(draft) => written.extend(draft["id"].as_u64()),
            Err(failure) => {
                // Otherwise the next review would publish them, too.
                for id in written {
                    drop(api.call(Method::DELETE, &format!("{drafts}/{id}"), None).await);
                }
                return Err(failure);
            }
        }
    }
    api.call(Method::POST, &format!("{drafts}/bulk_publish"), None).await.map(|_| Receipt::default())
}

fn no_pull_request(failure: Failure) -> Failure {
    match failure {
        Failure::TargetGone(cause) => {
            Failure::Refused(format!("Nothing can be reviewed here: {cause}").into())
        }
        other => other,
    }
}

/// Discussions have only the GraphQL API.
async fn discuss(api: &Api, place: &Target<'_>, body: &str) -> Result<Receipt, Failure> {
    let query = "mutation($input: AddDiscussionCommentInput!) { addDiscussionComment(input: $input) { comment { id } } }";
    let input = json!({ "discussionId": place.thread, "body": body });
    // On GitHub Enterprise Server, beside the REST API.
    let said = api.post("../graphql", &json!({ "query": query, "variables": { "input": input } })).await?;
    let error = &said["errors"][0];
    let Some(why) = error["message"].as_str() else { return Ok(Receipt::default()) };
    let cause = Cause::from(format!("GitHub: {why}"));
    Err(if error["type"] == "RATE_LIMITED" {
        Failure::RateLimited { wait: Duration::from_secs(60), scope: Scope::Channel, cause }
    } else {
        Failure::Refused(cause)
    })
}

fn place(target: &str) -> Result<Target<'_>, Failure> {
    Target::parse(target)
        .ok_or_else(|| Failure::Refused("There is nothing here that can be answered.".into()))
}

fn receipt(api: &Api, place: &Target<'_>, comment: &Value) -> Receipt {
    let id = comment["id"].as_u64().map(|id| place.comment_id(api.host, id));
    Receipt { vendor_id: id, target: None }
}

fn marker(id: &str) -> String {
    format!("{MARKER}{id} -->")
}
