// Renders a Helm chart as "helm template" does, with the parts that Helm itself is made of: Go's text/template, sprig, and
// Kubernetes's YAML. Unlike Helm it refuses a value that is not in values.yaml.
//
//	render-chart CHART RELEASE NAMESPACE VALUES.yaml
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

type files struct{ folder string }

// Get returns the text of a file of the chart.
func (f files) Get(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.folder, name))
	return string(text), err
}

func main() {
	chart, release, namespace := os.Args[1], os.Args[2], os.Args[3]
	var about struct{ Name, Version, AppVersion string }
	read(filepath.Join(chart, "Chart.yaml"), &about)
	values, given := object{}, object{}
	read(filepath.Join(chart, "values.yaml"), &values)
	read(os.Args[4], &given)
	merge(values, given, "")

	all := template.New("chart").Option("missingkey=error")
	funcs := sprig.TxtFuncMap()
	funcs["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	funcs["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	funcs["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	all.Funcs(funcs)

	names, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		check(err)
		_, err = all.New(filepath.Base(name)).Parse(string(text))
		check(err)
	}
	data := object{
		"Values":  values,
		"Chart":   about,
		"Files":   files{chart},
		"Release": object{"Name": release, "Namespace": namespace, "Service": "Helm"},
	}
	for _, name := range names {
		base := filepath.Base(name)
		if strings.HasPrefix(base, "_") {
			continue
		}
		fmt.Printf("---\n# Source: %s\n", base)
		check(all.ExecuteTemplate(os.Stdout, base, data))
		fmt.Println()
	}
}

func read(name string, into interface{}) {
	text, err := os.ReadFile(name)
	check(err)
	check(yaml.Unmarshal(text, into))
}

// Puts given values over those of the chart.
func merge(into, given object, path string) {
	for name, value := range given {
		before, known := into[name]
		if !known && len(into) > 0 {
			check(fmt.Errorf("%s%s: is not in values.yaml", path, name))
		}
		inner, isObject := before.(object)
		outer, givenObject := value.(object)
		if isObject && givenObject {
			merge(inner, outer, path+name+".")
		} else {
			into[name] = value
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
