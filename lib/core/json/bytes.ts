/** The bytes of a JSON text that its readers look for. */
export const QUOTE = 0x22
export const COMMA = 0x2c
export const COLON = 0x3a
export const BACKSLASH = 0x5c
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
