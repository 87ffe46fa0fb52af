import type { Express } from 'express'

/** A route of an app, as a request would find it. */
export interface MountedRoute {
  /** As it was mounted, for messages. */
  readonly name: string
  /** Whether a request finds it here. */
  serves(method: string, path: string): boolean
}

/** A mount as a router keeps it; Express's types leave it out. */
interface Layer {
  readonly route?: { readonly path: string | readonly string[]; readonly methods: Record<string, boolean> }
  readonly handle: { readonly stack?: readonly Layer[] }
  /** The part of a path that it matches, and which of its own paths did. */
  match(path: string): { readonly path: string; readonly pattern: string } | undefined | false
}

/** Every route of an app, those of the routers in it too. */
export function mountedRoutes(app: Express): MountedRoute[] {
  return routesIn((app as unknown as { router: { stack: readonly Layer[] } }).router.stack, (path) => path)
}

/** @param within the rest of a path behind where the stack is mounted; undefined where it is mounted elsewhere. */
function routesIn(stack: readonly Layer[], within: (path: string) => string | undefined): MountedRoute[] {
  return stack.flatMap((layer): MountedRoute[] => {
    const { route } = layer
    if (route) {
      const methods = Object.keys(route.methods)
      return [route.path].flat().map((own) => ({
        name: `${methods.join(',')} ${own}`,
        serves(method, path) {
          const rest = within(path)
          if (rest === undefined || !(methods.includes('_all') || methods.includes(method))) return false
          const found = layer.match(rest)
          return found ? found.pattern === own : false
        },
      }))
    }
    if (!layer.handle.stack) return []
    return routesIn(layer.handle.stack, (path) => {
      const rest = within(path)
      const found = rest !== undefined && layer.match(rest)
      return found ? rest.slice(found.path.replace(/\/$/, '').length) || '/' : undefined
    })
  })
}
