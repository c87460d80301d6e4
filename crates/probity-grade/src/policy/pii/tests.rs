//! Personal data, made up or from the documentation of the formats.

use super::*;

/// The rule finds exactly this in the middle of a sentence.
fn check(rule: &str, data: &str) {
    for text in [data.to_owned(), format!("So ({data}), he said: {data}."), format!("\"{data}\"")] {
        let told: Vec<_> =
            scan(&text).into_iter().map(|it| (it.rule, text[it.span].to_owned())).collect();
        assert!(
            !told.is_empty() && told.iter().all(|it| *it == (rule, data.to_owned())),
            "{text}: {told:?}"
        );
    }
}

/// The text has one hit, and it is this.
fn check_in(rule: &str, text: &str, data: &str) {
    let told: Vec<_> = scan(text).into_iter().map(|it| (it.rule, &text[it.span])).collect();
    assert_eq!(told, [(rule, data)], "{text}");
}

fn check_not(text: &str) {
    let told: Vec<_> = scan(text).into_iter().map(|it| (it.rule, &text[it.span])).collect();
    assert_eq!(told, [], "{text}");
}

#[test]
fn email_addresses_have_a_domain_that_could_be_somebodys() {
    for data in
        ["jane.doe+x@mail.acme.co.uk", "j_d@acme.io", "jörg@müller.de", "a@xn--mller-kva.xn--p1ai"]
    {
        check("email", data);
    }
    for text in [
        "jane@acme",
        "jane@acme.",
        "@jane",
        "jane @ acme.com",
        "jane@.com",
        "logo@2x.png",
        "react@18.2.0",
        "jane@example.com",
        "jane@host.example",
        "jane@-acme.com",
        "jane.@acme.com",
        "ja..ne@acme.com",
        "jane@acme.c",
        "@media (x: 1)",
    ] {
        check_not(text);
    }
}

#[test]
fn telephone_numbers_have_a_country_an_american_form_or_a_word() {
    for data in [
        "+1 212 555 0147",
        "+12125550147",
        "(212) 555-0147",
        "212-555-0147",
        "212.555.0147",
        "1-212-555-0147",
        "+44 20 7946 0958",
        "+49-30-901820",
        "+33 1 99 00 12 34",
    ] {
        check("phone", data);
    }
    check_in("phone", "mobile: 07700 900123", "07700 900123");
    check_in("phone", "call 2125550147 now", "2125550147");
    check_in("phone", "Tel. 98765 43210", "98765 43210");
    for text in [
        "2125550147",
        "1999-12-31",
        "31-12-1999",
        "1700000000",
        "07700 900123",
        "(123) 456-7890",
        "212-911-0147x",
        "978-3-16-148410-0",
        "1,212,555,0147",
        "$212.555.0147",
        "+1",
        "+12",
        "call 911",
        "3.14159 26535",
        "2 + 2125550147 x",
        "tel 31-12-1999",
    ] {
        check_not(text);
    }
}

#[test]
fn cards_have_an_issuer_a_length_and_a_check_digit() {
    for data in [
        "4242424242424242",
        "4242 4242 4242 4242",
        "4242-4242-4242-4242",
        "341234567891232",
        "3412 345678 91232",
        "36123456789120",
        "3534123456789121",
        "6011123456789126",
        "2234123456789126",
    ] {
        check("credit-card", data);
    }
    for text in [
        "4242424242424243",
        "4242 4242 4242 4243",
        "424242424242424",
        "9242424242424242",
        "0.4242424242424242",
        "42424242424242420",
    ] {
        check_not(text);
    }
}

#[test]
fn accounts_have_the_length_of_their_country_and_check_digits() {
    for data in [
        "GB33BUKB20201555555555",
        "GB33 BUKB 2020 1555 5555 55",
        "NO8330001234567",
        "SE35 5000 0000 0549 1000 0003",
    ] {
        check("iban", data);
    }
    for text in [
        "GB33BUKB20201555555556",
        "GB33BUKB2020155555555",
        "GB33bukb20201555555555",
        "ZZ33BUKB20201555555555",
        "AGB33BUKB20201555555555",
        "GB33 BUKB 2020 1555 5555",
    ] {
        check_not(text);
    }
    check_in("us-bank-account", "account number 94545678765", "94545678765");
    check_not("94545678765");
}

#[test]
fn addresses_of_machines_are_told_from_versions_paths_and_times() {
    for data in [
        "203.0.113.7",
        "0.0.0.0",
        "2001:db8::1",
        "fe80::a:b:c:d",
        "::ffff:203.0.113.7",
        "1:2:3:4:5:6:7:8",
        "::1",
    ] {
        check("ip-address", data);
    }
    check_in("ip-address", "http://[2001:db8::1]:80/", "2001:db8::1");
    check_in("ip-address", "IPv6:2001:db8::1:", "2001:db8::1");
    check_in("ip-address", "203.0.113.7:80", "203.0.113.7");
    check_in("ip-address", "203.0.113.0/24", "203.0.113.0");
    check_in("ip-address", "the unspecified address ::", "::");
    for text in [
        "203.0.113",
        "203.0.113.256",
        "303.0.113.7",
        "203.0.0113.7",
        "version 1.2.3.4",
        "v1.2.3.4",
        "1.3.6.1.4",
        "12:30:45",
        "1:2:3:4",
        "std::fmt",
        "Add::bad",
        "x[::2]",
        "x[1::2]",
        "::",
        "2001:db8:::1",
        "1::2::3",
        "12345::1",
        "1:2:3:4:5:6:7:8:9",
        "fe80::xyz",
    ] {
        check_not(text);
    }
}

#[test]
fn addresses_of_devices_keep_to_one_separator() {
    for data in [
        "00:00:5E:00:53:AF",
        "00-00-5e-00-53-af",
        "de:ad:be:ef:ca:fe",
        "0000.5e00.53af",
        "dead.beef.cafe",
    ] {
        check("mac-address", data);
    }
    check_in("mac-address", "MAC:00:00:5E:00:53:AF", "00:00:5E:00:53:AF");
    check_in("mac-address", "MAC 1234.5678.9012", "1234.5678.9012");
    for text in [
        "00:00:5E:00:53",
        "00:00-5E:00:53:AF",
        "00:00:5E:00:53:AG",
        "FF:FF:FF:FF:FF:FF",
        "00-00-00-00-00-00",
        "1234.5678.9012",
        "00:00:5E:00:53:AF:01",
    ] {
        check_not(text);
    }
}

#[test]
fn american_numbers_are_those_that_were_issued() {
    for data in ["856-45-6789", "856 45 6789", "856.45.6789"] {
        check("us-ssn", data);
    }
    for data in ["912-70-1234", "950 99 1234"] {
        check("us-itin", data);
    }
    check_in("us-ssn", "SSN 856456789", "856456789");
    check_in("us-itin", "my tax id is 912701234", "912701234");
    check_in("us-itin", "912701234", "912701234");
    check_in("us-passport", "passport no. 912803456", "912803456");
    check_in("us-dea", "DEA AB1234563", "AB1234563");
    for text in [
        "000-45-6789",
        "666-45-6789",
        "912-45-6789",
        "856-00-6789",
        "856-45-0000",
        "123-45-6789",
        "856-45.6789",
        "856-45-67890",
        "1-856-45-6789",
        "856456789",
        "912-89-1234",
        "912-93-1234",
        "912-69-1234",
        "85645-6789",
        "AB1234564",
        "1234567890123",
    ] {
        check_not(text);
    }
}

#[test]
fn british_numbers_are_told_by_their_check_digit_and_letters() {
    check("uk-nhs", "943 476 5919");
    check("uk-nino", "AB 12 34 56 C");
    check("uk-nino", "AB123456C");
    check_in("uk-nhs", "NHS number: 9434765919", "9434765919");
    for text in [
        "943 476 5918",
        "x 9434765919",
        "DB123456C",
        "AO123456C",
        "GB123456C",
        "AB123456E",
        "AB1234567C",
        "000 000 0000",
    ] {
        check_not(text);
    }
}

#[test]
fn wallets_are_told_by_their_checksum() {
    // The first address of all, and the examples of BIP 173 and BIP 350.
    check("crypto-wallet", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa");
    check("crypto-wallet", "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4");
    check("crypto-wallet", "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0");
    for text in [
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNaa",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7Kv8f3t4",
    ] {
        check_not(text);
    }
}
