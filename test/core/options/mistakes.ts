import assert from 'node:assert/strict'

/** Values of every kind. Most of them are wrong for any option. */
const WRONG: readonly unknown[] = [
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
function misspellings(option: string): string[] {
  const swapped = option.slice(0, -2) + [...option.slice(-2)].reverse().join('')
  const all = [option.toUpperCase(), `${option}s`, option.slice(0, -1), swapped]
  return all.filter((misspelt) => misspelt !== option)
}

/** Returns what `make` throws; undefined if it takes what it is given. */
export function faultOf(make: () => unknown): Error | undefined {
  try {
    make()
    return undefined
  } catch (error) {
    assert.ok(error instanceof Error)
    return error
  }
}

/** Options that say how long something is kept, or what its age may be: no timer waits for it. */
const KEPT: ReadonlySet<string> = new Set([
  ...[
    'keepRecordsMs',
    'keepResourcesMs',
    'keepDeliveriesMs',
    'keepEntriesMs',
    'staleKeysMs',
    'keepFineRowsMs',
    'entryWithinMs',
    'probeMs',
  ],
  ...['shortestPollMs', 'longestPollMs', 'signedForMs'],
])

/** A time that a timer waits is refused where a timer would fire at once. Others may be of any length. */
export function assertTimersAreBounded(options: readonly string[], make: (given: object) => unknown): void {
  for (const option of options.filter((name) => name.endsWith('Ms'))) {
    const told = faultOf(() => make({ [option]: 2 ** 31 }))
    if (KEPT.has(option)) assert.equal(told, undefined, option)
    else assert.match(told?.message ?? 'it is taken', new RegExp(`"${option}" must be `), option)
  }
}

/** Each misspelling of an option is reported, with the option that was meant. */
export function assertMeantIsNamed(
  owner: string,
  options: readonly string[],
  make: (misspelt: object) => unknown,
): void {
  for (const option of options)
    for (const misspelt of misspellings(option)) {
      const told = faultOf(() => make({ [misspelt]: 1 }))
      assertLine(told, `${owner}: there is no option "${misspelt}"`, misspelt)
      assert.match(told?.message ?? '', /did you mean "\w+"\?/, misspelt)
    }
}

/** Most values of another kind are refused by an option, each as `check` says. */
export function assertWrongIsRefused(
  option: string,
  make: (value: unknown) => unknown,
  check: (error: Error, what: string) => void,
): void {
  let refused = 0
  for (const value of WRONG) {
    const error = faultOf(() => make(value))
    if (!error) continue
    refused++
    check(error, `${option}: ${String(value)}`)
  }
  assert.ok(refused >= 8, `${option} takes nearly anything`)
}

/** Every value that an option names where it is given a wrong one is a value that says something, and is taken. */
export function assertNamedAreTaken(option: string, make: (value: unknown) => unknown): void {
  const told = faultOf(() => make(Symbol('x')))?.message ?? ''
  const named = /must be ((?:(?:"[^"]*"|true|false)(?:, | or )?)+), not/.exec(told)?.[1]
  if (named === undefined) return
  for (const value of named.split(/, | or /).map((each) => JSON.parse(each) as unknown)) {
    assert.notEqual(value, '', option)
    assert.doesNotMatch(faultOf(() => make(value))?.message ?? '', new RegExp(`"${option}" must be`), option)
  }
}
