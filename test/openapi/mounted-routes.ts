import type { Express } from 'express'

/** A route of an app, as a request would find it. */
export interface MountedRoute {
  /** As it was mounted, for messages. */
  readonly name: string
  /** Whether a request finds it here. */
  serves(method: string, path: string): boolean
}

/** What a router keeps of one mount; Express's types leave it out. */
interface Layer {
  readonly route?: { readonly path: string | readonly string[]; readonly methods: Record<string, boolean> }
  readonly handle: { readonly stack?: readonly Layer[] }
  /** The part of the path that it matched last. */
  readonly path?: string
  match(path: string): boolean
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
          const taken = methods.includes('_all') || methods.includes(method)
          return taken && rest !== undefined && layer.match(rest) && isOf(own, rest)
        },
      }))
    }
    if (!layer.handle.stack) return []
    return routesIn(layer.handle.stack, (path) => {
      const rest = within(path)
      if (rest === undefined || !layer.match(rest)) return undefined
      return rest.slice((layer.path ?? '').replace(/\/$/, '').length) || '/'
    })
  })
}

/** One of several paths that a layer was given: whether it is this one that fits. */
function isOf(own: string, path: string): boolean {
  const [, first = ''] = own.split('/')
  return own === '/' || /^[:*{]/.test(first) || path.split('/').slice(0, 3).join('/').startsWith(`/${first}`)
}
