use std::collections::HashMap;

use super::{
    layer::Layer,
    merge::merge,
    parts::{FIELDS, Parts, Place, variable},
    route,
};

fn parts(given: &[(&str, &str)]) -> Parts {
    let mut parts = Parts::default();
    for (field, value) in given {
        parts.set(field, (*value).to_owned()).expect("a value");
    }
    parts
}

fn options(given: &[(&str, &str)]) -> Layer {
    Layer::options(parts(given))
}

fn environment(given: &[(&str, &str)]) -> Layer {
    let given: HashMap<String, String> = given
        .iter()
        .map(|(field, value)| (variable(field), (*value).to_owned()))
        .collect();
    Layer::environment(&|name| Ok(given.get(name).cloned())).expect("a layer")
}

fn merged(layers: &[Layer]) -> HashMap<&'static str, String> {
    merge(layers)
        .expect("a description")
        .given()
        .into_iter()
        .collect()
}

fn refused(layers: &[Layer]) -> String {
    merge(layers).expect_err("it must be refused").to_string()
}

#[test]
fn every_part_can_be_set_by_its_variable_and_handed_on_by_it() {
    for (field, _) in FIELDS {
        let value = match field {
            "port" | "db" => "1",
            "tls" => "true",
            _ => "text",
        };
        let layer = environment(&[(field, value)]);
        assert_eq!(layer.parts.given(), [(field, value.to_owned())], "{field}");
    }
}

#[test]
fn the_first_layer_that_says_where_redis_is_counts_and_others_add_what_they_know() {
    let told = merged(&[
        options(&[("host", "a")]),
        environment(&[("redis", "redis://u:p@b"), ("namespace", "shop")]),
        options(&[("port", "7000"), ("user", "app"), ("namespace", "other")]),
    ]);
    let expected = [
        ("host", "a"),
        ("port", "7000"),
        ("user", "app"),
        ("namespace", "shop"),
    ];
    let expected: HashMap<_, _> = expected.map(|(f, v)| (f, v.to_owned())).into();
    assert_eq!(told, expected);
}

#[test]
fn the_login_that_is_said_first_counts_be_it_in_the_address_or_beside_it() {
    let later = merged(&[
        options(&[("redis", "redis://u:p@a")]),
        environment(&[("password", "q"), ("user", "v")]),
    ]);
    assert_eq!(later["redis"], "redis://u:p@a");
    assert!(!later.contains_key("password") && !later.contains_key("user"));
    let first = merged(&[
        options(&[("user", "v"), ("password-file", "f")]),
        environment(&[("redis", "redis://u:p@a/3")]),
    ]);
    assert_eq!(first["redis"], "redis://a/3");
    assert_eq!(first["user"], "v");
    let added = merged(&[
        options(&[("redis", "redis://u@a")]),
        environment(&[("password", "q")]),
    ]);
    assert_eq!(
        (added["redis"].as_str(), added["password"].as_str()),
        ("redis://u@a", "q")
    );
    let file = merged(&[
        options(&[("host", "a"), ("password-file", "f")]),
        environment(&[("password", "q")]),
    ]);
    assert!(!file.contains_key("password"));
}

#[test]
fn what_contradicts_itself_is_refused_with_both_names() {
    for (given, one, other) in [
        (
            &[("redis", "redis://a"), ("host", "b")][..],
            "--redis",
            "--host",
        ),
        (
            &[("socket", "/a"), ("cluster", "b:1")],
            "--socket",
            "--cluster",
        ),
        (&[("port", "1"), ("sentinel", "b")], "--port", "--sentinel"),
        (
            &[("redis", "redis://u:p@a"), ("user", "b")],
            "--redis",
            "--user",
        ),
        (&[("redis", "redis://a"), ("db", "1")], "--redis", "--db"),
        (&[("socket", "/a"), ("tls", "true")], "--socket", "--tls"),
        (&[("cluster", "a:1"), ("db", "1")], "cluster", "--db"),
        (&[("sentinel", "a")], "--sentinel", "--sentinel-master"),
        (&[("tls-cert", "a")], "--tls-cert", "--tls-key"),
        (
            &[("host", "a"), ("tls", "false"), ("tls-ca", "c")],
            "--tls-ca",
            "--tls",
        ),
    ] {
        let said = refused(&[options(given)]);
        assert!(said.contains(one) && said.contains(other), "{said}");
    }
    let said = refused(&[environment(&[
        ("password", "s3cret"),
        ("password-file", "f"),
    ])]);
    assert!(said.contains("TENURE_REDIS_PASSWORD_FILE"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn what_was_merged_can_be_handed_on() {
    for layers in [
        [
            options(&[("user", "v")]),
            environment(&[("redis", "redis://u:p@a")]),
        ],
        [
            options(&[("password", "q")]),
            environment(&[("redis", "redis+unix:///s?user=u&pass=p&db=1")]),
        ],
        [
            options(&[("host", "a"), ("tls", "true")]),
            environment(&[("redis", "redis://b"), ("password", "q")]),
        ],
    ] {
        let told = merge(&layers).expect("a description");
        let given = told.given();
        let given: Vec<_> = given.iter().map(|(f, v)| (*f, v.as_str())).collect();
        assert_eq!(merge(&[environment(&given)]).expect("the same"), told);
    }
}

#[test]
fn nothing_shows_a_password() {
    let given = parts(&[
        ("redis", "redis://u:s3cret@a"),
        ("password", "s3cret"),
        ("sentinel-password", "s3cret"),
    ]);
    assert_eq!(given.place(), Some(Place::Address));
    let said = format!("{given:?} {:?}", route::builder(&given));
    assert!(!said.contains("s3cret"), "{said}");
}
