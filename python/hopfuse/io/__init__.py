"""Files in and out: tables, JSON Lines, arrays, judgements and runs; errors name the file and the line."""
