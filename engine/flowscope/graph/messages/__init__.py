"""Messages in protocol buffers' form. Summaries and savers enter by `event_messages`."""
