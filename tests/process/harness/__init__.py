"""What the process tests share: models and an oracle for them, ranks with deadlines, the host."""
