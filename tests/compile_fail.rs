//! Wrong wiring does not compile, and the compiler says what is wrong. The messages are those of the newest stable
//! compiler; after an update of it `TRYBUILD=overwrite cargo test --test compile_fail` writes them anew.

#[test]
fn wrong_wiring_does_not_compile_and_the_message_says_why() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_fail/*.rs");
}
