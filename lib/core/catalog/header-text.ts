/** Whether a text can be the name of a header. */
export function isHeaderName(text: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(text)
}

/** Whether a text can be the value of a header. */
export function isHeaderValue(text: string): boolean {
  return !/[^\t\x20-\x7e\x80-\xff]/.test(text)
}
