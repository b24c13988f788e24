"""From text that arrives to speech that leaves."""
