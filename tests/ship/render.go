// Renders a chart with what helm renders with: Go's text/template, sprig, and the few functions that helm adds. No subcharts.
//
//	render CHART RELEASE NAMESPACE [VALUES...]    prints all objects as YAML documents
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type values = map[string]interface{}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func load(path string) values {
	text, err := os.ReadFile(path)
	fatal(err)
	out := values{}
	fatal(yaml.UnmarshalStrict(text, &out))
	return out
}

// Later files win, maps are merged, as helm does with -f.
func merge(into, from values) {
	for name, value := range from {
		below, isMap := value.(values)
		there, wasMap := into[name].(values)
		if isMap && wasMap {
			merge(there, below)
		} else {
			into[name] = value
		}
	}
}

func main() {
	chart := os.Args[1]
	given := load(filepath.Join(chart, "values.yaml"))
	for _, path := range os.Args[4:] {
		merge(given, load(path))
	}
	meta := load(filepath.Join(chart, "Chart.yaml"))
	top := values{
		"Values":  given,
		"Release": values{"Name": os.Args[2], "Namespace": os.Args[3], "Service": "Helm", "IsInstall": true},
		"Chart":   values{"Name": meta["name"], "Version": meta["version"], "AppVersion": meta["appVersion"]},
	}
	all := template.New("chart").Option("missingkey=error")
	functions := sprig.HermeticTxtFuncMap()
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["required"] = func(text string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", text)
		}
		return value, nil
	}
	all.Funcs(functions)
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	fatal(err)
	sort.Strings(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		fatal(err)
		_, err = all.New(filepath.Base(path)).Parse(string(text))
		fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, ".yaml") {
			var out bytes.Buffer
			fatal(all.ExecuteTemplate(&out, filepath.Base(path), top))
			fmt.Printf("---\n# %s\n%s\n", filepath.Base(path), out.String())
		}
	}
}
