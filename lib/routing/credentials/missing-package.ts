import { UnsentError } from '../attempt/unsent-error.ts'

/** Returns a handler for a package that cannot be loaded: each is an optional one, for lines that need it. */
export function missing(packages: string): (error: unknown) => never {
  return () => {
    throw new UnsentError(`the line needs packages that are not installed: npm install ${packages}`)
  }
}
