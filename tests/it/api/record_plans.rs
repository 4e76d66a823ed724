//! The read path with generated selections: aliases, fragments, repeated fields, directives, nested relations.
//! A small interpreter, written from the GraphQL specification, computes the expected answer from the full
//! record.

use std::{fmt::Write, slice::Iter, sync::Arc};

use async_graphql::Variables;
use muster::core::Request;
use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::{Map, Value, json};

use crate::{
    api::query_count::known,
    harness::{TestApp, Walker, named},
};

/// How many relations deep.
const DEPTH: usize = 2;

#[test]
fn generated_selections_match_the_full_record() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let walker = Walker::new();
    let (app, wholes) = runtime.block_on(async {
        let app = TestApp::start_with(|config| {
            config.limits.graphql_complexity = usize::MAX;
            config.limits.graphql_aliases = usize::MAX;
            config.limits.graphql_depth = 64;
        })
        .await;
        let all = app.populate(4).await;
        let known = known(app.org, &all);
        let mut wholes = Vec::new();
        assert!(
            !walker.lists().iter().all(|field| walker.is_planned(&field.ty)),
            "some of them are not records"
        );
        for field in walker.lists().into_iter().filter(|field| walker.is_planned(&field.ty)) {
            let document = walker.fullest(field, DEPTH, &known);
            let data = app.owner.gql(&document, json!({})).await.data();
            let call = format!("{}{}", field.name, walker.arguments(field, &known));
            wholes.push((call, field.ty.clone(), data[&field.name].clone()));
        }
        (app, wholes)
    });
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let choices = proptest::collection::vec(any::<u8>(), 0..400);
    let result = runner.run(&choices, |choices| {
        let mut writer = Writer { walker: &walker, choices: choices.iter(), fragments: Vec::new() };
        let (call, ty, whole) = &wholes[writer.pick(wholes.len())];
        let nodes = writer.nodes(ty, DEPTH, 0);
        let flags = [0; 4].map(|_| writer.pick(2) == 1);
        let document = Document { call, nodes, fragments: writer.fragments };
        // Twice with different values: a plan cached for the document must not keep the first ones.
        for flags in [flags, flags.map(|flag| !flag), flags] {
            runtime.block_on(check(&app, &walker, &document, ty, whole, flags))?;
        }
        Ok(())
    });
    let entered = runtime.enter();
    drop(app);
    drop(entered);
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn an_object_emptied_by_directives_is_empty() {
    let app = TestApp::start().await;
    app.populate(1).await;
    let data = app
        .owner
        .gql(
            "query($o: Id!, $all: Boolean!) { approvals(orgId: $o, page: 1, limit: 10, onlyPending: false) {
               data { question { options { id @include(if: $all) } } agent { id @include(if: $all) } } } }",
            json!({ "o": app.org, "all": false }),
        )
        .await
        .data();
    assert_eq!(data["approvals"]["data"][0], json!({ "question": { "options": [{}, {}] }, "agent": {} }));
}

async fn check(
    app: &TestApp,
    walker: &Walker,
    document: &Document<'_>,
    ty: &str,
    whole: &Value,
    flags: [bool; 4],
) -> Result<(), TestCaseError> {
    let text = document.text();
    let variables: Map<String, Value> = (0..4)
        .map(|n| (format!("v{n}"), json!(flags[n])))
        .filter(|(name, _)| text.contains(&format!("${name}")))
        .collect();
    let variables = Value::Object(variables);
    let reader = Reader { walker, document, flags };
    let expected = json!({ "r": reader.project(whole, ty, &[&document.nodes]) }).to_string();
    let answer = app.owner.gql(&text, variables.clone()).await;
    prop_assert!(answer.body["errors"].is_null(), "{}\n{:#}", text, answer.body);
    prop_assert_eq!(answer.body["data"].to_string(), expected.clone(), "over HTTP: {} {}", text, variables);
    let mut request = Request::system(&app.core);
    request.caller = app.caller(&app.owner).await;
    let request = async_graphql::Request::new(&text)
        .variables(Variables::from_json(variables))
        .data(Arc::new(request))
        .data(Arc::new(muster::read::Reading::default()));
    let answer = app.service.graphql.schema.execute(request).await;
    prop_assert!(answer.errors.is_empty(), "{}\n{:?}", text, answer.errors);
    let data = serde_json::to_string(&answer.data).unwrap();
    prop_assert_eq!(data, expected, "as values: {}", text);
    Ok(())
}

/// A selection, as the test generates it.
enum Node {
    Field { alias: Option<String>, name: String, when: When, below: Option<Vec<Node>> },
    Inline { on: Option<String>, when: When, nodes: Vec<Node> },
    Spread { fragment: usize, when: When },
}

/// A directive: whether to skip (or include), and by which flag, a variable or a literal.
#[derive(Clone, Copy)]
enum When {
    Always,
    Flag { skip: bool, variable: usize },
    Literal { skip: bool, value: bool },
}

struct Fragment {
    ty: String,
    nodes: Vec<Node>,
}

struct Document<'a> {
    call: &'a str,
    nodes: Vec<Node>,
    fragments: Vec<Fragment>,
}

/// Generates selections from choices; once they run out, the shortest ones, so that a failing case shrinks.
struct Writer<'a> {
    walker: &'a Walker,
    choices: Iter<'a, u8>,
    fragments: Vec<Fragment>,
}

impl Writer<'_> {
    fn pick(&mut self, of: usize) -> usize {
        self.choices.next().map_or(0, |choice| usize::from(*choice) % of)
    }

    fn nodes(&mut self, ty: &str, depth: usize, nested: usize) -> Vec<Node> {
        let count = 1 + self.pick(6);
        (0..count).map(|_| self.node(ty, depth, nested)).collect()
    }

    fn node(&mut self, ty: &str, depth: usize, nested: usize) -> Node {
        let when = self.when();
        // async-graphql ignores the directives of `__typename` when it checks which variables are used.
        let plain = if matches!(when, When::Flag { .. }) { When::Always } else { when };
        let on = named(ty).to_owned();
        match self.pick(8) {
            5 if nested < 3 => {
                let on = (self.pick(2) == 1).then_some(on);
                Node::Inline { on, when, nodes: self.nodes(ty, depth, nested + 1) }
            }
            6 if nested < 3 => {
                let nodes = self.nodes(ty, depth, nested + 1);
                self.fragments.push(Fragment { ty: on, nodes });
                Node::Spread { fragment: self.fragments.len() - 1, when }
            }
            7 => {
                let fitting = |(n, fragment): (usize, &Fragment)| (fragment.ty == on).then_some(n);
                let known: Vec<usize> = self.fragments.iter().enumerate().filter_map(fitting).collect();
                match known.len() {
                    0 => Node::Field { alias: None, name: "__typename".into(), when: plain, below: None },
                    // A fragment may show relations deeper than the full record was followed here.
                    _ if depth < DEPTH => Node::Field {
                        alias: Some("type_name".into()),
                        name: "__typename".into(),
                        when: plain,
                        below: None,
                    },
                    some => Node::Spread { fragment: known[self.pick(some)], when },
                }
            }
            _ => self.field(ty, depth, when),
        }
    }

    fn field(&mut self, ty: &str, depth: usize, when: When) -> Node {
        let walker = self.walker;
        let children = walker.children(ty, depth).unwrap();
        // Relations are few among many plain fields, and the ones worth testing.
        let objects: Vec<_> = children.iter().filter(|(field, _)| walker.is_object(&field.ty)).collect();
        let from_objects = !objects.is_empty() && self.pick(3) == 1;
        if children.is_empty() {
            // Only relations, and the full record wasn't followed deeper than this.
            return Node::Field { alias: None, name: "__typename".into(), when: When::Always, below: None };
        }
        let (field, below) = if from_objects {
            *objects[self.pick(objects.len())]
        } else {
            children[self.pick(children.len())]
        };
        let alias = (self.pick(3) == 1).then(|| format!("{}_{}", field.name, self.pick(2)));
        let below = walker.is_object(&field.ty).then(|| self.nodes(&field.ty, below, 0));
        Node::Field { alias, name: field.name.clone(), when, below }
    }

    fn when(&mut self) -> When {
        match self.pick(10) {
            7 => When::Literal { skip: self.pick(2) == 1, value: self.pick(2) == 1 },
            8 | 9 => When::Flag { skip: self.pick(2) == 1, variable: self.pick(4) },
            _ => When::Always,
        }
    }
}

impl Document<'_> {
    fn text(&self) -> String {
        let mut body = format!("{{ r: {} ", self.call);
        write_nodes(&self.nodes, &mut body);
        body.push_str(" }\n");
        for (n, fragment) in self.fragments.iter().enumerate() {
            write!(body, "fragment F{n} on {} ", fragment.ty).unwrap();
            write_nodes(&fragment.nodes, &mut body);
            body.push('\n');
        }
        let used = (0..4).filter(|n| body.contains(&format!("$v{n}")));
        let variables: Vec<String> = used.map(|n| format!("$v{n}: Boolean!")).collect();
        let head = if variables.is_empty() {
            "query".to_owned()
        } else {
            format!("query Q({})", variables.join(", "))
        };
        format!("{head} {body}")
    }
}

fn write_nodes(nodes: &[Node], out: &mut String) {
    out.push('{');
    for node in nodes {
        out.push(' ');
        match node {
            Node::Field { alias, name, when, below } => {
                if let Some(alias) = alias {
                    write!(out, "{alias}: ").unwrap();
                }
                out.push_str(name);
                write_when(*when, out);
                if let Some(below) = below {
                    out.push(' ');
                    write_nodes(below, out);
                }
            }
            Node::Inline { on, when, nodes } => {
                out.push_str("...");
                if let Some(on) = on {
                    write!(out, " on {on}").unwrap();
                }
                write_when(*when, out);
                out.push(' ');
                write_nodes(nodes, out);
            }
            Node::Spread { fragment, when } => {
                write!(out, "...F{fragment}").unwrap();
                write_when(*when, out);
            }
        }
    }
    out.push_str(" }");
}

fn write_when(when: When, out: &mut String) {
    let name = |skip: bool| if skip { "skip" } else { "include" };
    match when {
        When::Always => {}
        When::Flag { skip, variable } => write!(out, " @{}(if: $v{variable})", name(skip)).unwrap(),
        When::Literal { skip, value } => write!(out, " @{}(if: {value})", name(skip)).unwrap(),
    }
}

/// The interpreter.
struct Reader<'a> {
    walker: &'a Walker,
    document: &'a Document<'a>,
    flags: [bool; 4],
}

/// Response key, field name, and the merged selections below it.
type Collected<'a> = Vec<(&'a str, &'a str, Vec<&'a [Node]>)>;

impl<'a> Reader<'a> {
    fn project(&self, whole: &Value, ty: &str, sets: &[&'a [Node]]) -> Value {
        match whole {
            Value::Array(items) => items.iter().map(|item| self.project(item, ty, sets)).collect(),
            Value::Object(record) if self.walker.is_object(ty) => {
                let mut collected = Collected::new();
                for set in sets {
                    self.collect(set, &mut collected);
                }
                let fields = collected.into_iter().map(|(key, name, below)| {
                    if name == "__typename" {
                        return (key.to_owned(), json!(named(ty)));
                    }
                    let field = self.walker.fields(ty).unwrap().find(|field| field.name == name).unwrap();
                    (key.to_owned(), self.project(&record[name], &field.ty, &below))
                });
                Value::Object(fields.collect())
            }
            value => value.clone(),
        }
    }

    /// CollectFields from the specification: in order of the first appearance of each response key.
    fn collect(&self, nodes: &'a [Node], out: &mut Collected<'a>) {
        for node in nodes {
            match node {
                Node::Field { alias, name, when, below } if self.shown(*when) => {
                    let key = alias.as_deref().unwrap_or(name);
                    let at = out.iter().position(|(known, ..)| *known == key).unwrap_or_else(|| {
                        out.push((key, name, Vec::new()));
                        out.len() - 1
                    });
                    out[at].2.extend(below.as_deref());
                }
                Node::Inline { when, nodes, .. } if self.shown(*when) => self.collect(nodes, out),
                Node::Spread { fragment, when } if self.shown(*when) => {
                    self.collect(&self.document.fragments[*fragment].nodes, out);
                }
                _ => {}
            }
        }
    }

    fn shown(&self, when: When) -> bool {
        match when {
            When::Always => true,
            When::Flag { skip, variable } => self.flags[variable] != skip,
            When::Literal { skip, value } => value != skip,
        }
    }
}
