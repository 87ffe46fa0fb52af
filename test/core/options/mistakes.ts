import assert from 'node:assert/strict'

/** Values of every kind. Most of them are wrong for any option. */
export const WRONG: readonly unknown[] = [
  null,
  true,
  '7',
  'sk-secret-text',
  -1,
  1.5,
  Number.NaN,
  [],
  [7],
  {},
  Promise.resolve({}),
  () => {},
  Symbol('x'),
]

/** The message is one line that names the owner and the option, says what to write, and shows nothing of the value. */
export function assertLine(error: Error | undefined, begin: string, what: string): void {
  assert.ok(error, `${what} is taken`)
  assert.ok(error instanceof TypeError, `${what}: ${error.stack}`)
  assert.ok(error.message.startsWith(begin), `${what}: ${error.message}`)
  assert.doesNotMatch(
    error.message,
    /\n|sk-secret-text|undefined is not|of undefined|of null|undefined:/,
    what,
  )
}

/** Ways to misspell the name of an option. */
export function misspellings(option: string): string[] {
  const swapped = option.slice(0, -2) + [...option.slice(-2)].reverse().join('')
  const all = [option.toUpperCase(), `${option}s`, option.slice(0, -1), swapped]
  return all.filter((misspelt) => misspelt !== option)
}
