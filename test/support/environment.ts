/** Sets variables of the environment of this process, as an operator does, until a test has ended. */
export function setEnvironment(
  t: { after(end: () => void): unknown },
  variables: Readonly<Record<string, string>>,
): void {
  for (const [name, value] of Object.entries(variables)) {
    const before = process.env[name]
    process.env[name] = value
    t.after(() => {
      if (before === undefined) delete process.env[name]
      else process.env[name] = before
    })
  }
}
